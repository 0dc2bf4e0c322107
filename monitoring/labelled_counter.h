#pragma once
// LabelledCounter: one counter for each value of a label, over values fixed at construction. Every
// value starts at 0, so that a rate is right from the first event on. A value outside the set
// counts as "other": the number of series never grows.

#include <map>
#include <string>
#include <string_view>

namespace prometheus {
class Counter;
}

namespace loopfleet::monitoring {

class LabelledCounter {
 public:
  using Cells = std::map<std::string, prometheus::Counter*, std::less<>>;
  static constexpr std::string_view kOther = "other";

  explicit LabelledCounter(Cells cells);  // `cells` has kOther

  void Add(std::string_view value, double count = 1);  // safe from any thread

 private:
  Cells cells_;  // the registry owns the counters
};

}  // namespace loopfleet::monitoring
