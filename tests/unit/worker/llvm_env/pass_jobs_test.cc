// Jobs of kind `passes`, from a lease to its report, in a real child.

#include "worker/llvm_env/pass_jobs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "common/base/sha256.h"
#include "monitoring/registry.h"
#include "tests/unit/worker/llvm_env/pass_process_fixture.h"
#include "worker/coordinator_link/service.h"

namespace loopfleet::worker {
namespace {

using namespace std::chrono_literals;

class PassJobsTest : public PassProcessFixture {
 protected:
  static constexpr std::array kRoles = {ChildRole::kPasses};

  void SetUp() override {
    PassProcessFixture::SetUp();
    Begin(std::chrono::minutes(10));
  }
  void Begin(Nanos heads_idle) {
    jobs_.reset();
    jobs_ = std::make_unique<PassJobs>(
        JobKind::Parts{.fork_server = *fork_server_,
                       .metrics = metrics_,
                       .preparations = preparations_,
                       .clock = clock_,
                       .conditions = {.policy = "p"},
                       .max_held = 16,
                       .on_output =
                           [this] {
                             if (keep_blobs_ && keep_blobs_()) return;
                             std::lock_guard lock(mutex_);
                             ++outputs_;
                             changed_.notify_all();
                           },
                       .on_restart = [](ChildRole, ExitReason::Cause) {}},
        ProgramSource::Options{}, heads_idle);
  }
  void TearDown() override { jobs_.reset(); }

  void Grant(std::uint64_t id, std::string uri, std::vector<std::string> passes,
             std::vector<std::string> observe = {}) {
    wire::Lease lease{.lease = {id}, .job = {.batch = {1}, .index = 0}};
    lease.spec.source = looptree::BenchmarkUri{std::move(uri)};
    lease.spec.passes = std::move(passes);
    lease.spec.observe = std::move(observe);
    ASSERT_TRUE(jobs_->Accept(std::move(lease)));
  }
  std::map<std::uint64_t, Evaluation> Collect(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 120s, [&] { return outputs_ >= count; }));
    std::map<std::uint64_t, Evaluation> evaluations;
    for (wire::Report& report : jobs_->TakeFinished()) {
      evaluations[report.lease.value] = std::move(report.evaluation);
    }
    outputs_ = 0;
    return evaluations;
  }
  // Of the fork server: each head, the one that runs what no head does, and a spare.
  // That run, below the fork server: its children, and the heads, which are theirs.
  std::size_t Children() const { return RunningBelow(fork_server_->pid()); }
  static std::size_t RunningBelow(pid_t parent) {
    std::size_t count = 0;
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", parent));
    for (pid_t pid = 0; children >> pid;) {
      std::string stat;
      std::getline(std::ifstream(fmt::format("/proc/{}/stat", pid)), stat);
      const bool has_ended = stat.empty() || stat.contains(") Z ");
      count += (has_ended ? 0 : 1) + RunningBelow(pid);
    }
    return count;
  }
  bool AwaitChildren(std::size_t count) const {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (Children() != count && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(5ms);
    }
    return Children() == count;
  }
  static double Count(const Evaluation& evaluation) {
    return std::get<double>(evaluation.observed().values.at("IrInstructionCount"));
  }

  monitoring::Registry registry_;
  monitoring::WorkerMetrics metrics_{registry_, MetricLabels(kRoles)};
  Preparations preparations_;
  SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t outputs_ = 0;
  // Answers questions for blobs; false: there is none. Set before the jobs that ask.
  std::function<bool()> keep_blobs_;
  std::unique_ptr<PassJobs> jobs_;
};

TEST_F(PassJobsTest, JobsOfSeveralProgramsGetWhatTheyAskedFor) {
  Grant(1, "benchmark://small-v0/qsort", {});
  Grant(2, "benchmark://small-v0/qsort", {"mem2reg", "gvn"}, {"IrInstructionCount", "InstCount"});
  Grant(3, "benchmark://small-v0/bitcount", {"mem2reg"}, {"IrInstructionCount", "Ir"});
  Grant(4, "benchmark://small-v0/qsort", {"mem2reg"});
  const auto evaluations = Collect(4);
  ASSERT_EQ(evaluations.size(), 4U);
  for (const auto& [lease, evaluation] : evaluations) {
    ASSERT_TRUE(evaluation.ok()) << evaluation.failure().message;
    EXPECT_TRUE(evaluation.subject && evaluation.conditions);
  }
  EXPECT_GT(Count(evaluations.at(1)), Count(evaluations.at(4)));
  EXPECT_GT(Count(evaluations.at(4)), Count(evaluations.at(2)));
  const auto& values = evaluations.at(2).observed().values;
  EXPECT_EQ(std::get<std::vector<double>>(values.at("InstCount"))[0], Count(evaluations.at(2)));
  EXPECT_EQ(std::get<std::vector<double>>(values.at("changed")), (std::vector<double>{1, 1}));
  EXPECT_NE(std::get<std::string>(values.at("commandline")).find("function(gvn)"),
            std::string::npos);
  EXPECT_EQ(values.at("program"), evaluations.at(1).observed().values.at("program"));
  EXPECT_NE(std::get<std::string>(evaluations.at(3).observed().values.at("Ir")).find("define"),
            std::string::npos);
}

TEST_F(PassJobsTest, EachFailureIsItsOwnJobs) {
  Grant(1, "generator://llvm-stress-v0/1", {"dce", "scalarizer"});
  Grant(2, "generator://llvm-stress-v0/1", {"dce"});
  Grant(3, "benchmark://debian-v0/bzip2", {});  // this worker has none
  Grant(4, "benchmark://small-v0/qsort", {"no-such-pass"});
  Grant(5, "benchmark://small-v0/qsort", {"mem2reg"});
  const auto evaluations = Collect(5);
  ASSERT_EQ(evaluations.size(), 5U);
  EXPECT_EQ(evaluations.at(1).failure().code, FailureCode::kCompileError);
  EXPECT_EQ(evaluations.at(1).failure().action_index, 1U);
  EXPECT_TRUE(evaluations.at(2).ok());
  EXPECT_EQ(evaluations.at(3).failure().code, FailureCode::kInvalidBenchmark);
  EXPECT_EQ(evaluations.at(4).failure().code, FailureCode::kInvalidAction);
  EXPECT_TRUE(evaluations.at(5).ok());
}

// A kernel of several threads, timed meanwhile, did not have all of its cores.
TEST_F(PassJobsTest, PassesAreWorkOnTheCoresBesideTheTimingCore) {
  const Preparations::Mark mark = preparations_.Now();
  EXPECT_FALSE(preparations_.WereAnySince(mark));
  Grant(1, "benchmark://small-v0/qsort", {"mem2reg"});
  Collect(1);
  EXPECT_TRUE(preparations_.WereAnySince(mark));
}

TEST_F(PassJobsTest, WhatAnOutcomeDoesNotHoldIsKeptByTheCoordinator) {
  std::map<std::string, std::string> kept;
  std::optional<Failure> failure;
  bool uses_cores = false;
  keep_blobs_ = [&, jobs = jobs_.get()] {
    uses_cores |= preparations_.WereAnySince(preparations_.Now());
    const auto questions = jobs->TakeBlobQuestions();
    for (const BlobQuestion& question : questions) {
      const auto& piece = std::get<wire::BlobPiece>(question);
      std::string& bytes = kept[piece.sha256];
      if (piece.offset == bytes.size()) bytes += piece.bytes;
      jobs->AnswerBlob(
          wire::WorkerBlobHeld{.sha256 = piece.sha256, .bytes = bytes.size(), .failure = failure});
    }
    return !questions.empty();
  };
  Grant(1, "generator://csmith-v0/0", {}, {"ProgramlJson", "Programl"});
  const Evaluation observed = Collect(1).at(1);
  ASSERT_TRUE(observed.ok()) << observed.failure().message;
  const auto& values = observed.observed().values;
  const Blob blob = std::get<Blob>(values.at("ProgramlJson"));
  EXPECT_EQ(kept.at(blob.sha256).size(), blob.bytes);
  EXPECT_EQ(Sha256Of(kept.at(blob.sha256)), blob.sha256);
  EXPECT_TRUE(kept.at(blob.sha256).starts_with("{"));
  EXPECT_TRUE(std::holds_alternative<std::string>(values.at("Programl"))) << "it has room";
  EXPECT_EQ(kept.size(), 1U);
  EXPECT_FALSE(uses_cores) << "while the coordinator is waited for";

  failure = Failure{.code = FailureCode::kStorageFull, .message = "the disk is full"};
  Grant(2, "generator://csmith-v0/0", {}, {"ProgramlJson"});
  const Evaluation refused = Collect(1).at(2);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, FailureCode::kStorageFull);
  EXPECT_NE(refused.failure().message.find("the disk is full"), std::string::npos);
}

TEST_F(PassJobsTest, StatesKeptForTheNextJobGoWhenNoneComes) {
  Begin(3s);
  const std::vector<std::string> passes = {"mem2reg", "gvn", "dce"};
  const auto step = [&](std::ptrdiff_t count) {
    Grant(static_cast<std::uint64_t>(count) + 1, "benchmark://small-v0/qsort",
          {passes.begin(), passes.begin() + count});
    return Count(Collect(1).begin()->second);
  };
  step(0);
  ASSERT_TRUE(AwaitChildren(2)) << Children();
  step(1);
  const double second = step(2);
  EXPECT_TRUE(AwaitChildren(3)) << Children() << ": one holds the state";
  EXPECT_TRUE(AwaitChildren(2)) << Children() << ": no job came for it";
  EXPECT_LE(step(3), second) << "the next job is run from the program on";
}

}  // namespace
}  // namespace loopfleet::worker
