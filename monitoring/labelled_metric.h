#pragma once
// Metrics with one label whose values are fixed at construction: the number of series never grows,
// and every series exists from the start, at 0, so rates are right from the first event on. Safe
// from any thread. The registry owns the series and must outlive these.

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace loopfleet::monitoring {

class LabelledCounter {
 public:
  using Cells = std::map<std::string, prometheus::Counter*, std::less<>>;
  static constexpr std::string_view kOther = "other";

  explicit LabelledCounter(Cells cells);  // `cells` has kOther

  void Add(std::string_view value, double count = 1);  // an unknown value counts as kOther

 private:
  Cells cells_;
};

class LabelledGauge {
 public:
  using Cells = std::map<std::string, prometheus::Gauge*, std::less<>>;

  explicit LabelledGauge(Cells cells);

  void Set(std::string_view value, double amount);  // unknown: ignored

 private:
  Cells cells_;
};

// Of durations, in seconds.
class LabelledHistogram {
 public:
  using Cells = std::map<std::string, prometheus::Histogram*, std::less<>>;

  // `buckets`: the upper bounds, ascending, that every cell was made with.
  LabelledHistogram(Cells cells, std::span<const double> buckets);

  // An unknown value is ignored. `count`: how many took as long.
  void Observe(std::string_view value, std::chrono::nanoseconds duration, std::uint64_t count = 1);

 private:
  Cells cells_;
  std::vector<double> buckets_;
};

}  // namespace loopfleet::monitoring
