// The whole coordinator as a process: real sockets, real database, SIGKILL.

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/wire/bounds.h"
#include "common/wire/codec/codec.h"
#include "storage/sqlite/sqlite.h"
#include "tests/unit/coordinator/shell/coordinator_process.h"
#include "tests/unit/wire/transport/raw_peer.h"

namespace loopfleet::coordinator {
namespace {

constexpr std::size_t kAll = 1000;

JobSpec MatrixProduct(int m) {
  return {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm" + std::to_string(m) + "_8_8"}};
}

wire::SubmitJobs Jobs(int count) {
  wire::SubmitJobs submit{.request_id = Uuid::Random()};
  for (int i = 1; i <= count; ++i) submit.jobs.push_back(MatrixProduct(i));
  return submit;
}

template <class T>
T Expect(wire::CoordinatorMessage message) {
  if (const auto* refused = std::get_if<wire::Refused>(&message)) {
    ADD_FAILURE() << "refused: " << refused->failure.message;
    std::abort();
  }
  return std::get<T>(std::move(message));
}

class Shell : public testing::Test {
 protected:
  void Start() { coordinator = std::make_unique<CoordinatorProcess>(dir.path()); }
  void SetUp() override { Start(); }

  BatchId Submit(StubClient& client, const wire::SubmitJobs& jobs) {
    return Expect<wire::Accepted>(client.Call(jobs)).batch;
  }

  // Fetches all outcomes of the batch; each must arrive once, in order.
  std::vector<Outcome> Follow(StubClient& client, BatchId batch,
                              const std::function<void()>& meanwhile) {
    std::vector<Outcome> outcomes;
    while (true) {
      auto page = Expect<wire::OutcomePage>(client.Call(
          wire::FetchOutcomes{.batch = batch, .after_sequence = outcomes.size(), .wait_ms = 200},
          meanwhile));
      for (Outcome& outcome : page.outcomes) {
        EXPECT_EQ(outcome.sequence, outcomes.size() + 1);
        outcomes.push_back(std::move(outcome));
      }
      if (page.batch.state == wire::BatchState::kFinished &&
          outcomes.size() == page.batch.job_count) {
        return outcomes;
      }
    }
  }

  static std::set<std::uint32_t> IndicesOf(const std::vector<Outcome>& outcomes) {
    std::set<std::uint32_t> indices;
    for (const Outcome& outcome : outcomes) indices.insert(outcome.job.index);
    return indices;
  }

  PrivateDir dir;
  std::unique_ptr<CoordinatorProcess> coordinator;
  wire::Context context;
};

TEST_F(Shell, ABatchIsMeasuredAndThenAnsweredFromTheStore) {
  StubClient client(context, coordinator->clients);
  StubWorker worker(context, coordinator->workers, 8);
  const auto turn = [&] { worker.Step(kAll); };
  const auto first = Follow(client, Submit(client, Jobs(100)), turn);
  EXPECT_EQ(IndicesOf(first).size(), 100u);
  for (const Outcome& outcome : first) {
    ASSERT_TRUE(outcome.evaluation.ok());
    EXPECT_EQ(outcome.source, OutcomeSource::kMeasured);
  }
  const auto second = Follow(client, Submit(client, Jobs(100)), turn);
  for (const Outcome& outcome : second) {
    ASSERT_TRUE(outcome.evaluation.ok());
    EXPECT_EQ(outcome.source, OutcomeSource::kStored);
  }
  EXPECT_EQ(worker.runs().size(), 100u);
}

// A broken host fails what the others of its class can measure.
TEST_F(Shell, AFailureOfOneHostAnswersOnlyWhereNoOtherHostIs) {
  StubClient client(context, coordinator->clients);
  const auto measure = [&](const std::vector<StubWorker*>& workers) {
    const auto outcomes = Follow(client, Submit(client, Jobs(1)), [&] {
      for (StubWorker* worker : workers) worker->Step(kAll);
    });
    return std::pair(outcomes.at(0).evaluation.ok(), outcomes.at(0).source);
  };
  StubWorker broken(context, coordinator->workers, 8, "broken");
  broken.FailWith(FailureCode::kRunCrash);
  EXPECT_EQ(measure({&broken}), std::pair(false, OutcomeSource::kMeasured));
  EXPECT_EQ(measure({&broken}), std::pair(false, OutcomeSource::kStored));
  StubWorker sound(context, coordinator->workers, 8, "sound");
  Await("the other worker", [&] {
    broken.Step(kAll);
    sound.Step(kAll);
    return Expect<wire::WorkerList>(client.Call(wire::ListWorkers{})).workers.size() == 2;
  });
  EXPECT_EQ(measure({&broken, &sound}), std::pair(true, OutcomeSource::kMeasured));
}

TEST_F(Shell, AFailureThatTwoHostsAgreeOnAnswersForTheClass) {
  StubClient client(context, coordinator->clients);
  StubWorker one(context, coordinator->workers, 8, "one");
  StubWorker two(context, coordinator->workers, 8, "two");
  for (StubWorker* worker : {&one, &two}) worker->FailWith(FailureCode::kCompileError);
  const auto turn = [&] {
    one.Step(kAll);
    two.Step(kAll);
  };
  Await("both workers", [&] {
    turn();
    return Expect<wire::WorkerList>(client.Call(wire::ListWorkers{})).workers.size() == 2;
  });
  EXPECT_EQ(Follow(client, Submit(client, Jobs(1)), turn).at(0).attempts, 2U);
  EXPECT_EQ(Follow(client, Submit(client, Jobs(1)), turn).at(0).source, OutcomeSource::kStored);
}

TEST(ShellStart, APathNeedNotBeText) {
  const PrivateDir dir;
  const auto path = dir.path() / "caf\xe9";
  std::filesystem::create_directory(path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  CoordinatorProcess coordinator(path);
  coordinator.Signal(SIGTERM);
  EXPECT_EQ(coordinator.Wait(), 0);
}

TEST_F(Shell, InvalidJobsGetTheirFailureAndTheOthersRun) {
  StubClient client(context, coordinator->clients);
  StubWorker worker(context, coordinator->workers, 8);
  wire::SubmitJobs jobs = Jobs(1);
  jobs.jobs.push_back({.source = looptree::BenchmarkUri{"benchmark://no-such-v0/1"}});
  jobs.jobs.push_back(MatrixProduct(3));
  jobs.jobs.back().priority = kMostPriority + 1;
  const auto outcomes = Follow(client, Submit(client, jobs), [&] { worker.Step(kAll); });
  ASSERT_EQ(outcomes.size(), 3u);
  for (const Outcome& outcome : outcomes) {
    if (outcome.job.index == 0) {
      EXPECT_TRUE(outcome.evaluation.ok());
    }
    if (outcome.job.index == 1) {
      EXPECT_EQ(outcome.evaluation.failure().code, FailureCode::kInvalidBenchmark);
    }
    if (outcome.job.index == 2) {
      EXPECT_EQ(outcome.evaluation.failure().code, FailureCode::kMalformed);
    }
  }
}

TEST_F(Shell, KilledMidBatchItGoesOnWhereItWas) {
  StubClient client(context, coordinator->clients);
  StubWorker worker(context, coordinator->workers, 16);
  const BatchId batch = Submit(client, Jobs(300));
  for (int kills = 0; kills < 3; ++kills) {
    const std::size_t enough = worker.runs().size() + 40;
    Await("some work", [&] {
      worker.Step(2);
      return worker.runs().size() >= enough;
    });
    coordinator->Signal(SIGKILL);
    EXPECT_EQ(coordinator->Wait(), -SIGKILL);
    Start();
  }
  const auto outcomes = Follow(client, batch, [&] { worker.Step(kAll); });
  EXPECT_EQ(outcomes.size(), 300u);
  EXPECT_EQ(IndicesOf(outcomes).size(), 300u);
  EXPECT_GE(worker.hellos(), 4);
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.evaluation.ok());
}

TEST_F(Shell, TheSameRequestIsOneBatchOverARestart) {
  StubClient client(context, coordinator->clients);
  const wire::SubmitJobs jobs = Jobs(5);
  const BatchId batch = Submit(client, jobs);
  EXPECT_EQ(Submit(client, jobs), batch);
  coordinator->Signal(SIGKILL);
  coordinator->Wait();
  Start();
  EXPECT_EQ(Submit(client, jobs), batch);
  const auto list = Expect<wire::BatchList>(client.Call(wire::ListBatches{}));
  ASSERT_EQ(list.batches.size(), 1u);
  EXPECT_EQ(list.batches[0].job_count, 5u);
  EXPECT_EQ(list.batches[0].state, wire::BatchState::kRunning);
  wire::SubmitJobs other = Jobs(6);
  other.request_id = jobs.request_id;
  EXPECT_EQ(std::get<wire::Refused>(client.Call(other)).failure.code,
            FailureCode::kDuplicateIdConflict);
}

TEST_F(Shell, ItShowsBatchesJobsAndWorkers) {
  StubClient client(context, coordinator->clients);
  StubWorker worker(context, coordinator->workers, 1);
  const BatchId batch = Submit(client, Jobs(2));
  Await("a lease", [&] {
    worker.Step(0);
    return worker.held() == 1;
  });
  const JobId first{.batch = batch, .index = 0};
  const auto beat = [&] { worker.Step(0); };  // a silent worker is lost
  const auto job = Expect<wire::JobInfo>(client.Call(wire::ShowJob{first}, beat));
  EXPECT_EQ(job.state, wire::JobState::kLeased);
  EXPECT_EQ(job.worker, "stub");
  const auto workers = Expect<wire::WorkerList>(client.Call(wire::ListWorkers{}, beat));
  ASSERT_EQ(workers.workers.size(), 1u);
  EXPECT_EQ(workers.workers[0].leased_jobs, 1u);
  Follow(client, batch, [&] { worker.Step(kAll); });
  const auto done = Expect<wire::JobInfo>(client.Call(wire::ShowJob{first}));
  EXPECT_EQ(done.state, wire::JobState::kFinished);
  EXPECT_TRUE(done.outcome->evaluation.ok());
  const auto newest = Expect<wire::BatchInfo>(client.Call(wire::ShowBatch{}));
  EXPECT_EQ(newest.state, wire::BatchState::kFinished);
  Expect<wire::Accepted>(client.Call(wire::FlagResults{.jobs = {first}}));
  for (const wire::ClientMessage& unknown :
       {wire::ClientMessage(wire::ShowBatch{BatchId{99}}),
        wire::ClientMessage(wire::FlagResults{.jobs = {first, {.batch = batch, .index = 2}}}),
        wire::ClientMessage(wire::FlagResults{.jobs = {{.batch = BatchId{99}}}}),
        wire::ClientMessage(wire::ShowJob{{.batch = BatchId{99}}}),
        wire::ClientMessage(wire::FetchOutcomes{.batch = BatchId{99}, .wait_ms = 50}),
        wire::ClientMessage(wire::CancelBatch{BatchId{99}})}) {
    EXPECT_EQ(std::get<wire::Refused>(client.Call(unknown)).failure.code, FailureCode::kNotFound);
  }
}

TEST_F(Shell, ACancelledBatchIsOver) {
  StubClient client(context, coordinator->clients);
  const BatchId batch = Submit(client, Jobs(50));
  const auto info = Expect<wire::BatchInfo>(client.Call(wire::CancelBatch{batch}));
  EXPECT_EQ(info.state, wire::BatchState::kCancelled);
  EXPECT_EQ(info.finished, 50u);
  EXPECT_EQ(info.failed, 50u);
}

TEST_F(Shell, BytesThatAreNoMessageAreRefusedAndCounted) {
  StubClient client(context, coordinator->clients);
  const auto reply = client.Raw("these are not the bytes of a message");
  EXPECT_EQ(reply.number, 0u);
  EXPECT_EQ(std::get<wire::Refused>(reply.message).failure.code, FailureCode::kMalformed);
  const std::string whole =
      wire::Encode(wire::ClientRequest{.number = 5, .message = wire::ListWorkers{}});
  const auto cut = client.Raw(std::string_view(whole).substr(0, whole.size() / 2));
  EXPECT_EQ(std::get<wire::Refused>(cut.message).failure.code, FailureCode::kMalformed);
  const std::string metrics = HttpGet(coordinator->http, "/metrics");
  EXPECT_NE(metrics.find("loopfleet_malformed_messages_total 2"), std::string::npos) << metrics;
  Expect<wire::WorkerList>(client.Call(wire::ListWorkers{}));  // and it still answers
}

// The peak memory of the process.
std::size_t PeakBytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    std::size_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes << 10;
  }
  ADD_FAILURE() << "the kernel does not tell";
  return 0;
}

// Its first copy reaches the disk while the jobs of the second are being resolved.
TEST_F(Shell, ARepeatMeanwhileIsTheSameBatch) {
  StubClient client(context, coordinator->clients);
  constexpr std::size_t kRequests = 60;
  for (std::size_t request = 0; request < kRequests; ++request) {
    const wire::SubmitJobs jobs = Jobs(500);
    for (int copy = 0; copy < 4; ++copy) client.Send(jobs);
  }
  Await("every batch", [&] {
    const auto list = Expect<wire::BatchList>(client.Call(wire::ListBatches{}));
    EXPECT_LE(list.batches.size(), kRequests);
    return list.batches.size() == kRequests;
  });
}

TEST_F(Shell, AClientThatNeverReadsTakesABoundedPartOfItsMemory) {
  coordinator.reset();
  const std::vector<std::string> tcp = {"--listen-clients", "tcp://127.0.0.1:0"};
  coordinator = std::make_unique<CoordinatorProcess>(dir.path(), tcp);
  StubClient client(context, coordinator->clients);
  // A page of these outcomes nearly fills a message; none of them needs a worker.
  wire::SubmitJobs jobs{.request_id = Uuid::Random()};
  for (int i = 0; i < 15; ++i) {
    jobs.jobs.push_back({.source = looptree::BenchmarkUri{"benchmark://no-such-v0/1"}});
    jobs.jobs.back().tag = '"' + std::string(60 << 10, 'x') + '"';
  }
  const BatchId batch = Submit(client, jobs);
  EXPECT_EQ(Follow(client, batch, [] {}).size(), 15u);

  const std::size_t before = PeakBytes(coordinator->pid);
  wire::RawPeer silent(coordinator->clients);
  silent.ShakeHands();
  auto ask = [&, number = std::uint64_t{0}](wire::ClientMessage message) mutable {
    silent.WriteFrame(
        wire::Encode(wire::ClientRequest{.number = ++number, .message = std::move(message)}),
        wire::RawPeer::More::kNone);
  };
  for (int i = 0; i < 1000; ++i) {                                      // a gigabyte of replies
    if (i % 20 == 0) ask(wire::ClientHello{.client = Uuid::Random()});  // may be forgotten
    ask(wire::FetchOutcomes{.batch = batch});
  }
  silent.WriteFrame("not a message", wire::RawPeer::More::kNone);  // counted after all requests
  Await("the last of it", [&] {
    return HttpGet(coordinator->http, "/metrics").find("malformed_messages_total 1") !=
           std::string::npos;
  });
  EXPECT_LT(PeakBytes(coordinator->pid) - before, std::size_t{400} << 20);
  Await("what was not sent is counted", [&] {
    return HttpGet(coordinator->http, "/metrics").find("\nloopfleet_unsent_messages_total 0") ==
           std::string::npos;
  });
  EXPECT_EQ(Expect<wire::BatchList>(client.Call(wire::ListBatches{})).batches.size(), 1u);
}

// Sends slow requests over many connections, and counts the replies.
class Flood {
 public:
  Flood(wire::Context& context, const std::string& endpoint, std::size_t connections) {
    const Uuid client = Uuid::Random();
    for (std::size_t i = 0; i < connections; ++i) {
      dealers_.push_back(wire::Dealer::Connect(context, endpoint).value());
      Send(dealers_.back(), wire::ClientHello{.client = client});
    }
    Await("every welcome", [&] { return Answers() == connections; });
    wire::SubmitJobs submit = Jobs(2'000);
    for (wire::Dealer& dealer : dealers_) {
      submit.request_id = Uuid::Random();
      Send(dealer, submit);
    }
    answers_ = 0;
  }

  std::size_t Answers() {
    for (wire::Dealer& dealer : dealers_) {
      while (dealer.Receive()) ++answers_;
    }
    return answers_;
  }

 private:
  static void Send(wire::Dealer& dealer, wire::ClientMessage message) {
    const wire::ClientRequest request{.number = 1, .message = std::move(message)};
    ASSERT_EQ(dealer.Send(wire::Encode(request)), wire::SendResult::kSent);
  }

  std::vector<wire::Dealer> dealers_;
  std::size_t answers_ = 0;
};

TEST_F(Shell, WhoAsksForLittleDoesNotWaitForAllThatAnotherOneSent) {
  constexpr std::size_t kConnections = 60;
  StubClient client(context, coordinator->clients);
  Expect<wire::WorkerList>(client.Call(wire::ListWorkers{}));
  Flood flood(context, coordinator->clients, kConnections);
  Await("the first answer", [&] { return flood.Answers() > 0; });
  Expect<wire::WorkerList>(client.Call(wire::ListWorkers{}));
  EXPECT_LT(flood.Answers(), kConnections / 2);
  Submit(client, Jobs(1));  // accepted, so on disk, before most of theirs
  EXPECT_LT(flood.Answers(), kConnections * 3 / 4);
  Await("the rest", [&] { return flood.Answers() == kConnections; });
}

TEST_F(Shell, ItServesMetricsAndHealth) {
  StubClient client(context, coordinator->clients);
  StubWorker worker(context, coordinator->workers, 4);
  Follow(client, Submit(client, Jobs(10)), [&] { worker.Step(kAll); });
  EXPECT_NE(HttpGet(coordinator->http, "/healthz").find("200 OK"), std::string::npos);
  const auto shows = [&](const char* line) {
    return HttpGet(coordinator->http, "/metrics").find(line) != std::string::npos;
  };
  EXPECT_TRUE(shows("loopfleet_jobs_submitted_total 10"));
  EXPECT_TRUE(shows("loopfleet_jobs_completed_total{outcome=\"ok\"} 10"));
  EXPECT_TRUE(shows("loopfleet_outcomes_total{source=\"measured\"} 10"));
  Await("the store stage",
        [&] { return shows("loopfleet_job_stage_duration_seconds_count{stage=\"store\"} 10"); });
  Await("the gauge", [&] {
    worker.Step(0);
    return shows("loopfleet_workers{state=\"ready\"} 1");
  });
}

TEST_F(Shell, ADamagedBatchThatItRebuildsAtTheStartIsCounted) {
  {
    StubClient client(context, coordinator->clients);
    Submit(client, Jobs(1));
  }
  coordinator->Signal(SIGKILL);
  coordinator->Wait();
  {
    const auto database =
        storage::Connection::Open(dir.path() / "test.db", storage::Access::kReadWriteCreate,
                                  std::chrono::seconds(5))
            .value();
    ASSERT_TRUE(database->Run("UPDATE batches SET accepted_at = accepted_at + 1"));
  }
  Start();
  const std::string metrics = HttpGet(coordinator->http, "/metrics");
  EXPECT_NE(metrics.find("\nloopfleet_damaged_rows_total 1\n"), std::string::npos) << metrics;
}

TEST_F(Shell, OnSigtermItEndsAtOnceAndKeepsWhatItAccepted) {
  StubClient client(context, coordinator->clients);
  const BatchId batch = Submit(client, Jobs(20));
  coordinator->Signal(SIGTERM);
  EXPECT_EQ(coordinator->Wait(), 0);
  Start();
  StubWorker worker(context, coordinator->workers, 8);
  EXPECT_EQ(Follow(client, batch, [&] { worker.Step(kAll); }).size(), 20u);
}

TEST_F(Shell, ASecondOneOnTheSameDatabaseDoesNotStart) {
  const Ended ended = RunCoordinator({"--listen-clients", "tcp://127.0.0.1:0", "--listen-workers",
                                      "tcp://127.0.0.1:0", "--http", "127.0.0.1:0", "--db",
                                      (dir.path() / "test.db").native()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.errors.find(std::to_string(coordinator->pid)), std::string::npos) << ended.errors;
}

TEST(Options, MistakesHaveTheirExitCodes) {
  EXPECT_EQ(RunCoordinator({"--no-such-flag"}).status, 2);
  EXPECT_EQ(RunCoordinator({"--keys", "/tmp"}).status, 78);
  EXPECT_EQ(RunCoordinator({"--log-level", "loud"}).status, 78);
  EXPECT_EQ(RunCoordinator({"--listen-clients", "tcp://0.0.0.0:5570"}).status, 78);
  EXPECT_EQ(RunCoordinator({"--listen-clients", "nonsense"}).status, 78);
  EXPECT_EQ(RunCoordinator({"--config", "/no/such/file.toml"}).status, 78);
}

}  // namespace
}  // namespace loopfleet::coordinator
