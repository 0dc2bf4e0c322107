#pragma once
// Confirmation: the best figures of a batch, measured again. The quickest of many measurements is
// in part the luckiest, so its figure is biased. Measuring a fixed set of kernels again has no such
// bias.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "common/job/outcome.h"

namespace loopfleet::client {

// What commands that confirm winners do.
inline constexpr std::size_t kConfirmingRepeats = 3;
inline constexpr std::size_t kMostConfirmed = 1'000;  // of each benchmark

struct Winner {
  JobId job;
  looptree::Source benchmark;
  std::vector<looptree::Action> actions;
  std::string hardware_class;
  std::uint64_t flop_count = 0;
  double elapsed_ns = 0;    // the figure that it won by
  Grade grade = Grade::kD;  // of that figure
};

// The quickest kernels of each program on each class of hardware, at most `most` of each. Trees
// that became the same machine code are one kernel. A figure of grade D does not win.
class Winners {
 public:
  explicit Winners(std::size_t most) : most_(most) {}
  void Add(const Outcome& outcome);
  // By benchmark, the quickest first.
  std::vector<Winner> Sorted() const;

 private:
  using GroupKey = std::pair<std::string, std::string>;  // the benchmark's text, the hardware class
  struct Entry {
    Winner winner;
    std::string code_hash;
  };
  const std::size_t most_;
  std::map<GroupKey, std::vector<Entry>> entries_;  // the quickest first
};

struct Confirmed {
  Winner winner;
  // New figures on the same class of hardware: those of grade A or B, and the others.
  std::vector<double> good_ns;
  std::vector<double> poor_ns;
  // The new figures that count: the poor ones only where there is no good one.
  const std::vector<double>& remeasured_ns() const { return good_ns.empty() ? poor_ns : good_ns; }
  // There are new figures, but no good one: a neighbour may have slowed all of them.
  bool is_disturbed() const { return good_ns.empty() && !poor_ns.empty(); }
  double elapsed_ns() const;  // the median of those that count; 0: none
  // By how much the first figure was too good: 0.02 is 2 % more GFLOP/s than the median. 0: none.
  double bias() const;
};
struct Confirmation {
  BatchId batch;  // the first one of new measurements; 0: none, as there were no winners
  std::vector<Confirmed> winners;
};

// Measures each winner `repeats` times more, never from the store and without `cut_above_ns`, else
// as its job says. In rounds over all winners, so that drift affects all alike. What disturbs a
// busy host lasts for up to seconds, so winners with fewer good figures than that are measured as
// often again after 0.2, 0.4 and 0.8 s, unless 2 s have passed. Blocks until the outcomes are in.
Answer<Confirmation> Confirm(Client& client, std::vector<Winner> winners, std::size_t repeats);

// The median over the winners that were measured again. nullopt: none was.
std::optional<double> MedianBias(const std::vector<Confirmed>& confirmed);

}  // namespace loopfleet::client
