// EncodedSize is a bound: a message never needs more than the sum over its parts.

#include <gtest/gtest.h>

#include <numeric>

#include "common/wire/codec/codec.h"
#include "tests/unit/wire/codec/random_messages.h"

namespace loopfleet::wire {
namespace {

constexpr std::uint64_t kSeeds = 100;

template <class Parts, class SizeOf>
std::size_t Bound(const Parts& parts, SizeOf size_of) {
  std::size_t bytes = kMessageOverheadBytes;
  for (const auto& part : parts) bytes += size_of(part);
  return bytes;
}

// One segment: the first number of a frame is the number of segments less one.
bool IsOneSegment(const std::string& frame) { return frame.substr(0, 4) == std::string(4, '\0'); }

TEST(EncodedSize, BoundsSubmissionsAndLeases) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    RandomMessages random(seed);
    SubmitJobs submit{.request_id = Uuid::Random(), .append_to = {}, .jobs = {}};
    Leases leases;
    for (int i = 0; i < 100; ++i) {
      submit.jobs.push_back(random.Spec());
      leases.leases.push_back({.lease = LeaseId{1}, .job = {}, .spec = submit.jobs.back()});
    }
    const std::size_t bound =
        Bound(submit.jobs, [](const JobSpec& spec) { return EncodedSize(spec); });
    const std::string submission = Encode(ClientRequest{.number = 1, .message = submit});
    EXPECT_LE(submission.size(), bound);
    EXPECT_TRUE(IsOneSegment(submission));
    const std::string grant = Encode(WorkerCommand{leases});
    EXPECT_LE(grant.size(), bound);
    EXPECT_TRUE(IsOneSegment(grant));
  }
}

TEST(EncodedSize, BoundsPages) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    RandomMessages random(seed);
    OutcomePage page;
    page.batch.batch = BatchId{7};
    for (int i = 0; i < 100; ++i) page.outcomes.push_back(random.AnOutcome(page.batch.batch));
    const std::string frame = Encode(CoordinatorReply{.number = 1, .message = page});
    EXPECT_LE(frame.size(),
              Bound(page.outcomes, [](const Outcome& outcome) { return EncodedSize(outcome); }));
    EXPECT_TRUE(IsOneSegment(frame));
  }
}

TEST(EncodedSize, BoundsReports) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    RandomMessages random(seed);
    Reports reports;
    for (int i = 0; i < 100; ++i) {
      reports.reports.push_back(
          {.lease = LeaseId{1}, .job = {}, .evaluation = random.AnEvaluation()});
    }
    const std::string frame = Encode(WorkerMessage{reports});
    EXPECT_LE(frame.size(), Bound(reports.reports, [](const Report& report) {
                return EncodedSize(report.evaluation);
              }));
    EXPECT_TRUE(IsOneSegment(frame));
  }
}

TEST(EncodedSize, BoundsWorkerLists) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    RandomMessages random(seed);
    WorkerList list;
    for (int i = 0; i < 100; ++i) list.workers.push_back(random.Worker());
    const std::string frame = Encode(CoordinatorReply{.number = 1, .message = list});
    EXPECT_LE(frame.size(),
              Bound(list.workers, [](const WorkerInfo& worker) { return EncodedSize(worker); }));
    EXPECT_TRUE(IsOneSegment(frame));
  }
}

// The largest allowed job fits one message twice: in a JobInfo and in its outcome.
TEST(EncodedSize, TheLargestJobInfoFitsOneMessage) {
  JobInfo info;
  info.job = {.batch = BatchId{1}, .index = 0};
  info.spec.actions.assign(1024, looptree::Split{2});
  info.spec.tag.assign(kMaxTagBytes, 't');
  info.spec.labels.assign(kMaxLabels, std::string(kMaxLabelBytes, 'l'));
  info.spec.source = looptree::IrText{std::string(kMaxJobBytes - EncodedSize(info.spec) - 16, 'p')};
  ASSERT_EQ(OutOfBounds(info.spec), std::nullopt);

  const std::string fact(kMaxFactBytes, 'f');
  Outcome outcome{.job = info.job,
                  .worker = fact,
                  .benchmark = info.spec.source,
                  .actions = info.spec.actions,
                  .tag = info.spec.tag};
  Measurement measurement{.elapsed_ns = 1, .elapsed_min_ns = 1};
  measurement.samples_ns.assign(kMaxSamples, 1.0);
  measurement.sample_flags.assign(kMaxSamples, 0);
  outcome.evaluation.verdict = measurement;
  outcome.evaluation.code_hash.assign(kMaxCodeHashBytes, 'c');
  outcome.evaluation.notes.assign(kMaxNotes, std::string(kMaxNoteBytes, 'n'));
  outcome.evaluation.conditions =
      Conditions{.hardware = {.hardware_class = fact,
                              .model = fact,
                              .isa = fact,
                              .microcode = fact,
                              .host = fact,
                              .kernel = fact},
                 .compiler = {.llvm = fact, .tier = fact, .revision = fact},
                 .policy = fact,
                 .isolation = fact};
  info.outcome = outcome;
  const CoordinatorReply reply{.number = 1, .message = info};
  const std::string frame = Encode(reply);
  EXPECT_LE(frame.size(), kMaxMessageBytes);
  const auto decoded = DecodeCoordinatorReply(frame);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, reply);
}

}  // namespace
}  // namespace loopfleet::wire
