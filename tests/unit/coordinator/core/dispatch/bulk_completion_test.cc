// One event ends many jobs, piece by piece. Nothing is lost between two pieces.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <vector>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

constexpr std::uint32_t kPiece = 10;
constexpr std::uint32_t kJobs = 95;

Limits InPieces() { return {.max_endings_per_event = kPiece}; }

std::vector<JobSetup> Equal() { return std::vector<JobSetup>(kJobs, {.tree = 7}); }
std::vector<JobSetup> Different() {
  std::vector<JobSetup> jobs;
  for (std::uint32_t i = 0; i < kJobs; ++i) jobs.push_back({.tree = static_cast<std::uint8_t>(i)});
  return jobs;
}

std::size_t OutcomesIn(const Persist& persist) {
  std::size_t outcomes = 0;
  for (const storage::Write& write : persist.writes) {
    if (std::holds_alternative<storage::JobFinished>(write)) ++outcomes;
    const auto* answered = std::get_if<storage::JobsAnswered>(&write);
    if (answered != nullptr) outcomes += answered->jobs.size();
  }
  return outcomes;
}

// One of many equal jobs runs at "w" and is reported; the others follow it.
struct ReportedToMany : Harness {
  ReportedToMany() : Harness(InPieces()) {
    ClientHello("c", 1);
    ClientHello("d", 2);
    Submit("c", Equal());
    Submit("d", {{.tree = 7, .deadline_s = 60}});
    Write();
    WorkerHello("w", 50, {.credit = 4});
    const auto leases = TakeLeases("w");
    EXPECT_EQ(leases.size(), 1u);
    Report("w", leases.at(0));
  }
  std::size_t Answered() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        disk.outcomes, [](const auto& entry) { return entry.second.evaluation.ok(); }));
  }
};

TEST(Endings, AnAnswerForManyIsSharedPieceByPiece) {
  ReportedToMany h;
  std::unordered_set<const storage::StoredResult*> copies;
  std::size_t pieces = 0;
  for (; !h.unwritten.empty(); ++pieces) {
    ASSERT_EQ(h.unwritten.size(), 1u);  // the next piece waits for this one
    EXPECT_LE(OutcomesIn(h.unwritten.front()), kPiece + 1);
    EXPECT_LE(h.unwritten.front().writes.size(), 2u);
    for (const storage::Write& write : h.unwritten.front().writes) {
      const auto* answered = std::get_if<storage::JobsAnswered>(&write);
      if (answered == nullptr) continue;
      for (const auto& job : answered->jobs) copies.insert(job.answer.get());
    }
    h.WriteOne();
  }
  EXPECT_EQ(pieces, 10u);
  EXPECT_EQ(copies.size(), 1u);
  EXPECT_EQ(h.Answered(), kJobs + 1);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, kJobs - 1)).source, OutcomeSource::kCoalesced);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, kJobs - 1)).evaluation.measurement(),
            h.OutcomeOf(MakeJobId(1, 0)).evaluation.measurement());
  EXPECT_EQ(h.core->state().single_flight.size(), 0u);
  EXPECT_EQ(h.core->state().batches.size(), 0u);
}

TEST(Endings, WhoIsOwedAnAnswerMayLeave) {
  ReportedToMany h;
  h.Ask("d", wire::ExplainJob{.job = MakeJobId(2, 0)});
  h.Ask("d", wire::CancelBatch{.batch = BatchId{2}});
  h.Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), kJobs + 1);
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(2, 0))), FailureCode::kCancelled);
  EXPECT_EQ(h.core->state().single_flight.size(), 0u);
  EXPECT_EQ(h.core->state().batches.size(), 0u);
  h.Submit("c", {{.tree = 7}});
  h.Write();
  EXPECT_EQ(h.TakeLeases("w").size(), 1u);  // leased again
}

TEST(Endings, WhoIsOwedAnAnswerMayExpire) {
  ReportedToMany h;
  h.Pass(seconds(61));  // the disk writes nothing
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(2, 0))), FailureCode::kExpired);
  EXPECT_EQ(h.Answered(), kJobs);
}

TEST(Endings, WhoIsOwedAnAnswerAtACrashIsMeasured) {
  ReportedToMany h;
  h.WriteOne();
  h.Restart();
  EXPECT_EQ(h.disk.outcomes.size(), kPiece + 1);
  h.WorkerHello("w", 50, {.credit = 4});
  h.Pass(seconds(1));
  const auto leases = h.TakeLeases("w");
  ASSERT_EQ(leases.size(), 1u);
  h.Report("w", leases[0]);
  h.Write();
  EXPECT_EQ(h.Answered(), kJobs + 1);
}

// A large batch is cancelled while "w" runs five of its jobs.
struct CancelledInPieces : Harness {
  CancelledInPieces() : Harness(InPieces()) {
    ClientHello("c", 1);
    ClientHello("d", 2);
    Submit("c", Different());
    Write();
    WorkerHello("w", 50, {.credit = 5});
    leases = TakeLeases("w");
    EXPECT_EQ(leases.size(), 5u);
    Submit("c", {{.tree = 200}});
    Write();
    replies.clear();
    Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  }
  std::vector<wire::Lease> leases;
};

TEST(Endings, ABatchIsCancelledPieceByPiece) {
  CancelledInPieces h;
  EXPECT_TRUE(h.SaidNothing());
  // Its leases are revoked, and later jobs are dispatched.
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w")->leases.size(), 5u);
  EXPECT_TRUE(std::ranges::any_of(h.unwritten.front().writes, [](const storage::Write& write) {
    return std::holds_alternative<storage::BatchCancelled>(write);
  }));
  std::size_t pieces = 0;
  for (; !h.unwritten.empty(); ++pieces) {
    // Includes the jobs that are ended because they are next in the queue.
    EXPECT_LE(OutcomesIn(h.unwritten.front()), 3 * kPiece);
    h.WriteOne();
    EXPECT_EQ(h.from_storage.size(), 1u);  // answered with the first piece
    for (const wire::Lease& lease : h.TakeLeases("w")) EXPECT_EQ(lease.job, MakeJobId(2, 0));
  }
  EXPECT_GE(pieces, 3u);
  for (std::uint32_t i = 0; i < kJobs; ++i) {
    EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, i))), FailureCode::kCancelled);
  }
  EXPECT_EQ(h.core->state().leases.size(), 1u);
  EXPECT_EQ(h.core->state().batches.size(), 1u);
  EXPECT_TRUE(h.core->state().endings.cancelled.empty());
}

// The running ones end first, in pieces like the others.
TEST(Endings, WhatManyWorkersRunIsCancelledPieceByPiece) {
  constexpr std::size_t kRunning = 4 * kPiece;
  Harness h(InPieces());
  h.ClientHello("c", 1);
  h.Submit("c", Different());
  h.Write();
  h.WorkerHello("w", 50, {.credit = kRunning});
  const auto leases = h.TakeLeases("w");
  ASSERT_EQ(leases.size(), kRunning);
  h.Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  h.Report("w", leases.back());  // ends before its turn comes
  std::size_t revoked = 0;
  for (std::size_t piece = 1; !h.unwritten.empty(); ++piece) {
    // Includes those that are next in the queue.
    EXPECT_LE(OutcomesIn(h.unwritten.front()), 3 * kPiece);
    if (const auto revoke = h.TakeCommand<wire::Revoke>("w")) {
      EXPECT_LE(revoke->leases.size(), kPiece);
      revoked += revoke->leases.size();
    }
    h.WriteOne();
  }
  EXPECT_EQ(revoked, kRunning - 1);
  EXPECT_TRUE(h.OutcomeOf(leases.back().job).evaluation.ok());
  EXPECT_TRUE(h.core->state().endings.running.empty());
  EXPECT_EQ(h.core->state().batches.size(), 0u);
}

TEST(Endings, ABatchStaysCancelledThroughACrash) {
  CancelledInPieces h;
  h.WriteOne();
  EXPECT_LT(h.disk.outcomes.size(), kJobs);
  h.Restart();
  h.WorkerHello("w", 50, {.credit = 5, .held = {{h.leases[0].lease, h.leases[0].job}}});
  h.Pass(seconds(2));
  h.Write();
  const auto granted = h.TakeLeases("w");
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].job, MakeJobId(2, 0));
  for (std::uint32_t i = 0; i < kJobs; ++i) {
    EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, i))), FailureCode::kCancelled);
  }
}

TEST(Endings, AWorkerThatComesBackDoesNotGoOnWithACancelledBatch) {
  Harness h(InPieces());
  h.ClientHello("c", 1);
  auto jobs = Different();
  jobs.back().priority = 5;
  h.Submit("c", jobs);
  h.Write();
  h.WorkerHello("w", 50);
  const wire::Lease last = h.TakeLeases("w").at(0);
  ASSERT_EQ(last.job, MakeJobId(1, kJobs - 1));
  h.Pass(seconds(10));  // "w" is silent: lost
  h.Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  ASSERT_TRUE(h.core->Has(last.job));  // not ended yet
  h.WorkerHello("w", 50, {.held = {{last.lease, last.job}}});
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w")->leases, std::vector{last.lease});
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(last.job)), FailureCode::kCancelled);
  EXPECT_EQ(h.core->state().batches.size(), 0u);
}

TEST(Endings, OverdueJobsEndPieceByPiece) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", std::vector<JobSetup>(3 * h.limits.max_endings_per_event, {.deadline_s = 1}));
  h.Write();
  h.now.instant += seconds(1);
  h.Give(Tick{});
  for (; !h.unwritten.empty(); h.WriteOne()) {
    EXPECT_LE(OutcomesIn(h.unwritten.front()), h.limits.max_endings_per_event);
  }
  EXPECT_EQ(h.disk.outcomes.size(), 3 * h.limits.max_endings_per_event);
}

}  // namespace
}  // namespace loopfleet::coordinator
