#include "coordinator/shell/job_resolver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/job/loop_schedule.h"
#include "common/job/task.h"
#include "common/looptree/tree/key.h"
#include "coordinator/shell/observer.h"
#include "storage/sqlite/sqlite_store.h"
#include "tests/unit/coordinator/shell/coordinator_process.h"

namespace loopfleet::coordinator {
namespace {

using looptree::Split;
using looptree::SwapDown;

JobSpec MatrixProduct(int m) {
  return {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm" + std::to_string(m) + "_8_8"}};
}

SubjectKey TreeOf(const ReplayMemory::Replayed& replayed) {
  return std::get<ResolvedTask>(replayed).subject;
}

TEST(ReplayMemory, SaysWhatReplayingSays) {
  ReplayMemory memory(1 << 20);
  const JobSpec spec = MatrixProduct(16);
  const SubjectKey tree = looptree::KeyOf(ReplayJob(spec)->tree);
  EXPECT_EQ(TreeOf(memory.Replay(spec)), tree);
  EXPECT_EQ(TreeOf(memory.Replay(spec)), tree);  // from the cache
  const JobSpec bad = {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm0_8_8"}};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(std::get<Failure>(memory.Replay(bad)).code, FailureCode::kInvalidBenchmark);
  }
}

// 1.4 x 10^11 flop: too many for a CPU, and known before any worker is asked.
TEST(ReplayMemory, RefusesTooMuchWork) {
  ReplayMemory memory(1 << 20);
  JobSpec spec = {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm4096_4096_4096"}};
  EXPECT_EQ(std::get<Failure>(memory.Replay(spec)).code, FailureCode::kLimitFlops);
  spec.device = DeviceRequest::kAny;
  EXPECT_EQ(std::get<ResolvedTask>(memory.Replay(spec)).placement, Placement::kCuda);
}

// After a restart the flop count of a job's program is known for any of its trees, so a report
// about another program is detected.
TEST(ReplayMemory, RecallsWhatAnEarlierRunFoundOut) {
  ReplayMemory memory(1 << 20);
  JobSpec spec = MatrixProduct(16);
  spec.actions = {Split{2}};
  const auto at_first = std::get<ResolvedTask>(memory.Replay(spec));
  const storage::ReplayResult stored{.subject = at_first.subject, .placement = at_first.placement};
  const ResolvedTask later = ReplayMemory(1 << 20).Recall(stored, spec);
  EXPECT_EQ(later.subject, at_first.subject);
  EXPECT_EQ(later.placement, at_first.placement);
  EXPECT_EQ(later.flop_count, 2u * 16 * 8 * 8);
}

TEST(ReplayMemory, TellsRequestsApartByAllThatReplayingDependsOn) {
  ReplayMemory memory(1 << 20);
  JobSpec spec = MatrixProduct(16);
  const auto plain = TreeOf(memory.Replay(spec));
  spec.actions = {Split{2}};
  const auto by_2 = TreeOf(memory.Replay(spec));
  spec.actions = {Split{4}};
  const auto by_4 = TreeOf(memory.Replay(spec));
  spec.actions = {SwapDown{}};
  const auto swapped = TreeOf(memory.Replay(spec));
  EXPECT_NE(plain, by_2);
  EXPECT_NE(by_2, by_4);
  EXPECT_NE(by_4, swapped);
  spec.device = DeviceRequest::kCuda;
  EXPECT_EQ(std::get<ResolvedTask>(memory.Replay(spec)).placement, Placement::kCuda);
  spec.dialect = looptree::Dialect::kSimple;
  EXPECT_TRUE(std::holds_alternative<Failure>(memory.Replay(spec)));
}

TEST(ReplayMemory, ResolvesJobsOfEveryKind) {
  ReplayMemory memory(1 << 20);
  std::set<SubjectKey> subjects;
  for (const TaskInfo& task : TaskTable()) {
    JobSpec spec = {.source = looptree::BenchmarkUri{std::string(task.example)}};
    if (task.kind == TaskKind::kProfile) spec.profile = ProfileLevel::kRoots;
    for (int i = 0; i < 2; ++i) {
      const auto& resolved = std::get<ResolvedTask>(memory.Replay(spec));
      EXPECT_EQ(resolved.subject, task.resolve(spec)->subject);
      subjects.insert(resolved.subject);
    }
  }
  EXPECT_EQ(subjects.size(), TaskTable().size());
}

// A URI may hold any text: it must not pass for a request with passes.
TEST(ReplayMemory, ACraftedUriAnswersNoOtherRequest) {
  ReplayMemory memory(1 << 20);
  JobSpec good{.source = looptree::BenchmarkUri{"generator://csmith-v0/0"}};
  good.passes = {"-gvn"};
  for (const char* rest : {"1:4 -gvn0:", "\n1\n4 -gvn\n0", "0:0:"}) {
    const JobSpec crafted{
        .source = looptree::BenchmarkUri{fmt::format("generator://csmith-v0/0{}", rest)}};
    EXPECT_TRUE(std::holds_alternative<Failure>(memory.Replay(crafted)));
  }
  EXPECT_TRUE(std::holds_alternative<ResolvedTask>(memory.Replay(good)));
}

TEST(ReplayMemory, ForgetsAndStillAnswersRight) {
  ReplayMemory memory(1000);  // a few requests per generation
  for (int round = 0; round < 3; ++round) {
    for (int m = 1; m <= 20; ++m) {
      const JobSpec spec = MatrixProduct(m);
      EXPECT_EQ(TreeOf(memory.Replay(spec)), looptree::KeyOf(ReplayJob(spec)->tree)) << m;
    }
  }
}

// Thousands of answers may wait for the disk at a time.
TEST(JobResolver, AnAnswerFromTheStoreComesWithoutItsObservedValues) {
  const PrivateDir dir;
  const auto store = storage::SqliteStore::Open(dir.path() / "test.db").value();
  State state;
  state.workers.Welcome("peer", {.worker = Uuid::Random(), .capabilities = {"kind=passes"}}, {});
  const std::vector<JobSpec> specs = {
      {.source = looptree::BenchmarkUri{"generator://csmith-v0/0"}},
      {.source = looptree::BenchmarkUri{"generator://csmith-v0/1"}}};
  std::vector<storage::Write> writes = {storage::JobsAccepted{
      .batch = {1}, .client = Uuid::Random(), .request_id = Uuid::Random(), .jobs = specs}};
  for (std::uint32_t i = 0; i < specs.size(); ++i) {
    storage::JobFinished finished{.outcome = {.job = {{1}, i}, .sequence = i + 1}};
    Evaluation& evaluation = finished.outcome.evaluation;
    evaluation.verdict = Observed{.values = {{"Ir", std::string(500'000, 'x')}}};
    evaluation.subject = TaskOf(specs[i]).resolve(specs[i])->subject;
    evaluation.conditions.emplace();
    writes.emplace_back(std::move(finished));
  }
  ASSERT_TRUE(store->Apply(writes));
  const auto reader = store->OpenReader().value();
  ReplayMemory memory(1 << 20);
  monitoring::Registry registry;
  monitoring::CoordinatorMetrics metrics(registry, AllLabels());
  const SystemClock clock;
  JobResolver resolver(*reader, memory, metrics, clock);
  const StoredConditions conditions(state);
  for (std::size_t i = 0; i < 100; ++i) {
    const ResolvedJob job = resolver.Resolve(specs[i % 2], conditions);
    const auto* answer = std::get_if<storage::StoredAnswer>(&job.resolution);
    ASSERT_NE(answer, nullptr) << i;
    EXPECT_EQ((*answer)->row, i % 2 == 0 ? -1 : -2);
    EXPECT_TRUE((*answer)->evaluation.observed().values.empty());
  }
}

// Each of two workers has measured one of two jobs, whose affinity a third job may bind to a worker
// while a message with both is being resolved.
class AffinityTest : public ::testing::Test {
 protected:
  AffinityTest() {
    std::vector<storage::Write> writes = {storage::JobsAccepted{
        .batch = {1}, .client = Uuid::Random(), .request_id = Uuid::Random(), .jobs = specs_}};
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      workers_[i] = Uuid::Random();
      state_.workers.Welcome(name, {.worker = workers_[i], .name = name}, {});
      storage::JobFinished finished{
          .outcome = {.job = {{1}, i}, .sequence = i + 1, .worker = name}};
      Evaluation& evaluation = finished.outcome.evaluation;
      evaluation.verdict = Measurement{.elapsed_ns = 10};
      evaluation.subject = TaskOf(specs_[i]).resolve(specs_[i])->subject;
      evaluation.conditions.emplace();
      writes.emplace_back(std::move(finished));
    }
    EXPECT_TRUE(store_->Apply(writes));
    for (JobSpec& spec : specs_) spec.affinity = "run";
  }
  void Resolve(std::size_t job) { jobs_.push_back(resolver_.Resolve(specs_[job], conditions_)); }
  void Bind(std::size_t worker) { state_.affinities.Bind("run", workers_[worker], 9); }
  // Of each job; "": it is to be measured.
  std::vector<std::string> AnsweredBy() const {
    std::vector<std::string> workers;
    for (const ResolvedJob& job : jobs_) {
      const auto* answer = std::get_if<storage::StoredAnswer>(&job.resolution);
      workers.push_back(answer == nullptr ? "" : (*answer)->worker);
    }
    return workers;
  }

  const PrivateDir dir_;
  const std::unique_ptr<storage::Store> store_ =
      storage::SqliteStore::Open(dir_.path() / "test.db").value();
  const std::unique_ptr<storage::StoreReader> reader_ = store_->OpenReader().value();
  std::vector<JobSpec> specs_ = {MatrixProduct(16), MatrixProduct(32)};
  std::vector<Uuid> workers_{2};
  State state_;
  ReplayMemory memory_{1 << 20};
  monitoring::Registry registry_;
  monitoring::CoordinatorMetrics metrics_{registry_, AllLabels()};
  const SystemClock clock_;
  JobResolver resolver_{*reader_, memory_, metrics_, clock_};
  const StoredConditions conditions_{state_};
  std::vector<ResolvedJob> jobs_;
};

TEST_F(AffinityTest, OneWorkerAnswersWhileItIsNotBound) {
  Resolve(0);
  Resolve(1);
  resolver_.MeasureStale(jobs_, StoredConditions(state_));
  EXPECT_EQ(AnsweredBy(), (std::vector<std::string>{"a", ""}));
}

TEST_F(AffinityTest, AWorkerThatTakesAJobMeanwhileIsTheOneThatAnswers) {
  Resolve(0);
  const std::uint64_t changes = state_.affinities.changes();
  Bind(1);
  EXPECT_GT(state_.affinities.changes(), changes);
  Resolve(1);
  EXPECT_EQ(AnsweredBy(), (std::vector<std::string>{"a", "b"}));
  resolver_.MeasureStale(jobs_, StoredConditions(state_));
  EXPECT_EQ(AnsweredBy(), (std::vector<std::string>{"", "b"}));
}

TEST_F(AffinityTest, AWorkerThatIsBoundAndGoneLeavesTheMessageToOne) {
  Resolve(0);
  Bind(1);
  Resolve(1);
  const std::uint64_t changes = state_.affinities.changes();
  state_.affinities.Release("run");
  EXPECT_GT(state_.affinities.changes(), changes);
  state_.workers.Remove(workers_[0]);
  resolver_.MeasureStale(jobs_, StoredConditions(state_));
  EXPECT_EQ(AnsweredBy(), (std::vector<std::string>{"", "b"}));
}

}  // namespace
}  // namespace loopfleet::coordinator
