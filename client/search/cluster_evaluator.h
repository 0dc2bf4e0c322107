#pragma once
// ClusterEvaluator: has candidates evaluated by a fleet. Equal ones that the store knows are
// answered from there, so a repeated search costs next to nothing.

#include <deque>
#include <string>
#include <vector>

#include "client/search/evaluator.h"

namespace loopfleet::client {

class ClusterEvaluator : public Evaluator {
 public:
  // `conditions`: of every job, except benchmark, actions and cut_above_ns.
  explicit ClusterEvaluator(Client& client, JobSpec conditions = {})
      : client_(client), conditions_(std::move(conditions)) {}

  // Cancels the batches that were not received.
  ~ClusterEvaluator() override;

  Answer<void> Send(std::span<const Trial> trials) override;
  Answer<std::vector<Outcome>> Receive() override;

 private:
  Client& client_;
  const JobSpec conditions_;
  std::deque<BatchId> sent_;
};

}  // namespace loopfleet::client
