#include "client/search/cluster_evaluator.h"

#include <chrono>
#include <utility>

#include "client/search/figure.h"
#include "client/search/search_space.h"

namespace loopfleet::client {

ClusterEvaluator::~ClusterEvaluator() {
  if (sent_.empty()) return;
  client_.AllowFinalCalls(std::chrono::seconds(2));  // the client may have been told to stop
  for (const BatchId batch : sent_) (void)client_.Cancel(batch);
}

Answer<void> ClusterEvaluator::Send(std::span<const Trial> trials) {
  std::vector<JobSpec> jobs;
  for (const Trial& trial : trials) {
    JobSpec& job = jobs.emplace_back(conditions_);
    job.source = trial.source;
    if (IsProgram(trial.source)) {
      job.passes = trial.candidate.passes;
      job.observe = {kInstructions, kInstructionsOz};
      continue;
    }
    job.actions = trial.candidate.actions;
    job.cut_above_ns = static_cast<std::uint64_t>(trial.cut_above_ns);
  }
  LF_TRY(const BatchId batch, client_.Submit(jobs));
  sent_.push_back(batch);
  return {};
}

Answer<std::vector<Outcome>> ClusterEvaluator::Receive() {
  std::vector<Outcome> outcomes;
  LF_TRY_VOID(client_.Follow(sent_.front(), [&](const wire::OutcomePage& page) {
    outcomes.resize(page.batch.job_count);
    for (const Outcome& outcome : page.outcomes) outcomes.at(outcome.job.index) = outcome;
  }));
  sent_.pop_front();
  return outcomes;
}

}  // namespace loopfleet::client
