#pragma once
// BatchRecords: gathers what a walk of a PrefixTree reports, node by node, and says what that means
// for each episode.

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/llvm_env/episode.h"
#include "worker/llvm_env/pass_message.h"
#include "worker/llvm_env/prefix_tree.h"

namespace loopfleet::worker {

class BatchRecords {
 public:
  // `baselines`: the values that are known already.
  BatchRecords(std::size_t nodes,
               std::map<passes::Observation, passes::ObservationValue> baselines);

  // False: junk, or a record names a node that does not exist, or a value that is there already.
  bool Add(std::string_view records);

  const std::map<passes::Observation, passes::ObservationValue>& baselines() const {
    return baselines_;
  }
  // `path`: the node of each step. `interruption`: why the walk did not come to its end, if it did
  // not.
  EpisodeResult ResultOf(const Episode& episode, std::span<const std::uint32_t> path,
                         const std::optional<PassFailure>& interruption) const;

 private:
  struct Node {
    std::optional<bool> changed;  // none: its pass has not ended well
    std::vector<std::pair<passes::Observation, passes::ObservationValue>> values;
    std::map<passes::Observation, PassFailure> missing;
    std::optional<PassFailure> failure;
  };

  bool AddOne(StepRecord record);
  bool AddOne(ValueRecord record);
  bool AddOne(NoValueRecord record);
  bool AddOne(FailureRecord record);

  // nullptr: it is not known.
  const passes::ObservationValue* ValueAt(std::uint32_t node,
                                          passes::Observation observation) const;
  // Why the value is not known.
  PassFailure MissingAt(std::uint32_t node, passes::Observation observation,
                        const std::optional<PassFailure>& interruption) const;

  std::vector<Node> nodes_;
  std::map<passes::Observation, passes::ObservationValue> baselines_;
  std::map<passes::Observation, PassFailure> missing_baselines_;
};

}  // namespace loopfleet::worker
