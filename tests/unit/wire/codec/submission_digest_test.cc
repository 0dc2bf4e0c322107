#include "common/wire/codec/submission_digest.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "common/wire/codec/codec.h"
#include "tests/unit/wire/codec/fixed_messages.h"

namespace loopfleet::wire {
namespace {

SubmitJobs Submission() { return std::get<SubmitJobs>(FixedRequests()[1].second.message); }

TEST(SubmissionDigest, IsOfTheContentAlone) {
  SubmitJobs other = Submission();
  other.request_id = Uuid::Random();
  EXPECT_EQ(SubmissionDigest(other), SubmissionDigest(Submission()));
}

// A digest stored by an earlier version is compared with that version's kind of digest.
TEST(SubmissionDigest, IsOfTheKindThatWasKept) {
  const std::string old = ContentDigest(Submission());
  EXPECT_EQ(SubmissionDigestOfSameKind(old, Submission()), old);
  const std::string own = SubmissionDigest(Submission());
  EXPECT_EQ(SubmissionDigestOfSameKind(own, Submission()), own);
  EXPECT_NE(old, own);
}

TEST(SubmissionDigest, EveryPartOfTheContentCounts) {
  std::vector<SubmitJobs> different(6, Submission());
  different[0].append_to.reset();
  different[1].end = BatchEnd::kComplete;
  different[2].jobs.pop_back();
  std::swap(different[3].jobs[0], different[3].jobs[1]);
  different[4].jobs[1].source = looptree::BenchmarkUri{"program text\n"};
  different[5].jobs[1].source = looptree::IrText{"program texts\n"};
  const std::vector<std::function<void(JobSpec&)>> changes = {
      [](JobSpec& job) { job.actions.pop_back(); },
      [](JobSpec& job) { job.actions[7] = looptree::Split{17}; },
      [](JobSpec& job) { job.rules = looptree::RuleSet::kStructural; },
      [](JobSpec& job) { job.on_illegal = looptree::OnIllegal::kReject; },
      [](JobSpec& job) { job.merge_all_first = !job.merge_all_first; },
      [](JobSpec& job) { job.dialect.reset(); },
      [](JobSpec& job) { job.device = DeviceRequest::kByBenchmark; },
      [](JobSpec& job) { job.freshness = Freshness::kAllowStored; },
      [](JobSpec& job) { job.tag += " "; },
      [](JobSpec& job) { job.priority += 1; },
      [](JobSpec& job) { job.threads += 1; },
      [](JobSpec& job) { job.cache = CacheState::kWarm; },
      [](JobSpec& job) { job.labels.emplace_back("one more"); },
      [](JobSpec& job) { job.labels.clear(); },
      [](JobSpec& job) { job.passes.emplace_back("-gvn"); },
      [](JobSpec& job) { job.observe.emplace_back("InstCount"); },
      [](JobSpec& job) { job.affinity += "x"; },
      [](JobSpec& job) { job.precision *= 2; },
      [](JobSpec& job) { job.budget_ms *= 2; },
      [](JobSpec& job) { job.cut_above_ns += 1; },
      [](JobSpec& job) { job.deadline_s *= 2; },
      [](JobSpec& job) { job.max_age_s *= 2; },
      [](JobSpec& job) { job.min_grade = Grade::kA; },
  };
  for (const auto& change : changes) change(different.emplace_back(Submission()).jobs[0]);
  for (std::size_t i = 0; i < different.size(); ++i) {
    EXPECT_NE(SubmissionDigest(different[i]), SubmissionDigest(Submission())) << i;
    for (std::size_t k = 0; k < i; ++k) {
      EXPECT_NE(SubmissionDigest(different[i]), SubmissionDigest(different[k])) << i << " " << k;
    }
  }
}

}  // namespace
}  // namespace loopfleet::wire
