#pragma once
// Confirmation: the best figures of a batch, measured again. The best of many figures is in part
// the luckiest of many, so it is too good. Figures of the same kernels that are measured for their
// own sake are not, whatever they turn out to be.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "common/job/outcome.h"

namespace loopfleet::client {

struct Winner {
  JobId job;
  looptree::Source benchmark;
  std::vector<looptree::Action> actions;
  std::uint64_t flop_count = 0;
  double elapsed_ns = 0;  // the figure that it won by
};

// The quickest kernels of each program on each class of hardware, at most `most` of each. Trees
// that became the same machine code are one kernel. A figure of grade D does not win.
class Winners {
 public:
  explicit Winners(std::size_t most) : most_(most) {}
  void Add(const Outcome& outcome);
  // By benchmark, the quickest first.
  std::vector<Winner> Take() const;

 private:
  using Contest = std::pair<std::string, std::string>;  // the benchmark's text, the hardware class
  struct Entry {
    Winner winner;
    std::string code_hash;
  };
  const std::size_t most_;
  std::map<Contest, std::vector<Entry>> entries_;  // the quickest first
};

struct Confirmed {
  Winner winner;
  std::vector<double> again_ns;  // of the new measurements, in turns; one that failed is missing
  double elapsed_ns() const;     // their median; 0: none
  // By how much the first figure was too good: 0.02 is 2 % more GFLOP/s than the new ones.
  double bias() const;
};

// Measures each winner `turns` times more, fresh, as its job asked: all once, then all again. Waits
// for the outcomes.
Answer<std::vector<Confirmed>> Confirm(Client& client, std::vector<Winner> winners,
                                       std::size_t turns);

// The median over those that were measured again; 0 if none was.
double MedianBias(const std::vector<Confirmed>& confirmed);

}  // namespace loopfleet::client
