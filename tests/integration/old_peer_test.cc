// Upgrades one side at a time: replays the recorded bytes of older programs to today's coordinator,
// worker and client, as real processes. tests/golden/conversation/README.md says what was recorded,
// and how to record the next version.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "client/client.h"
#include "client/local_cluster.h"
#include "common/base/subprocess.h"
#include "common/wire/codec/codec.h"
#include "common/wire/transport/poller.h"
#include "tests/support/conversation/conversation.h"
#include "tests/support/paths.h"
#include "tests/unit/wire/keys/private_directory.h"

namespace loopfleet::client {
namespace {

using namespace std::chrono_literals;
using Way = Conversation::Way;

// Reached only if something is wrong, even on a much slower machine.
constexpr auto kLimit = 300s;
constexpr std::size_t kJobs = 3;

Conversation Recorded(const std::string& version, const std::string& peer) {
  return ReadConversation(std::filesystem::path(LOOPFLEET_SOURCE_DIR) /
                          "tests/golden/conversation" / version / (peer + ".txt"));
}

// The recorded frames of one direction that hold a `Kind`, as bytes and decoded.
template <class Kind>
struct Said {
  std::string bytes;
  Kind means;
};

template <class Kind, class Decode>
std::vector<Said<Kind>> FramesWith(const Conversation& recorded, Way way, Decode decode) {
  std::vector<Said<Kind>> found;
  for (const std::string& frame : recorded.Of(way)) {
    const auto message = decode(frame);
    EXPECT_TRUE(message.has_value()) << "a recorded frame cannot be read any more";
    if (!message) continue;
    if (const auto* kind = std::get_if<Kind>(&*message)) found.push_back({frame, *kind});
  }
  return found;
}

auto CommandOf = [](const std::string& frame) { return wire::DecodeWorkerCommand(frame); };
auto WorkerSays = [](const std::string& frame) { return wire::DecodeWorkerMessage(frame); };
auto ReplyOf = [](const std::string& frame) -> std::expected<wire::CoordinatorMessage, Failure> {
  auto reply = wire::DecodeCoordinatorReply(frame);
  if (!reply) return std::unexpected(reply.error());
  return std::move(reply->message);
};
auto RequestOf = [](const std::string& frame) -> std::expected<wire::ClientMessage, Failure> {
  auto request = wire::DecodeClientRequest(frame);
  if (!request) return std::unexpected(request.error().failure);
  return std::move(request->message);
};

std::set<std::uint64_t> LeasesIn(const std::vector<Said<wire::Leases>>& frames) {
  std::set<std::uint64_t> leases;
  for (const auto& frame : frames) {
    for (const wire::Lease& lease : frame.means.leases) leases.insert(lease.lease.value);
  }
  return leases;
}

// A socket that sends recorded frames and receives the answers.
class OldPeer {
 public:
  explicit OldPeer(const std::string& endpoint)
      : dealer_(wire::Dealer::Connect(context_, endpoint).value()) {
    poller_.Add(dealer_);
  }

  void Say(const std::string& frame) {
    while (dealer_.Send(frame) != wire::SendResult::kSent) std::this_thread::sleep_for(1ms);
  }
  // The next frame; nullopt: none within `wait`.
  std::optional<std::string> Hear(Nanos wait = kLimit) {
    const auto end = std::chrono::steady_clock::now() + wait;
    while (std::chrono::steady_clock::now() < end) {
      if (auto frame = dealer_.Receive()) return frame;
      poller_.Wait(10ms);
    }
    return std::nullopt;
  }
  // The next `Kind`; skips others. Says `beat`, if any, while nothing comes: a slow coordinator
  // must not give a silent worker up.
  template <class Kind, class Decode>
  std::optional<Kind> Await(Decode decode, const std::string& beat = {}) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (std::chrono::steady_clock::now() < end) {
      const auto frame = Hear(beat.empty() ? Nanos(kLimit) : 500ms);
      if (!frame) {
        if (!beat.empty()) Say(beat);
        continue;
      }
      const auto message = decode(*frame);
      if (!message) return std::nullopt;
      if (const auto* kind = std::get_if<Kind>(&*message)) return *kind;
    }
    return std::nullopt;
  }

 private:
  wire::Context context_;
  wire::Dealer dealer_;
  wire::Poller poller_;
};

class OldPeerTest : public ::testing::TestWithParam<std::string> {
 protected:
  const Conversation worker_ = Recorded(GetParam(), "worker");
  const Conversation client_ = Recorded(GetParam(), "client");
};

INSTANTIATE_TEST_SUITE_P(Versions, OldPeerTest, ::testing::Values("2026-11-22-ed7fed4"),
                         [](const auto& version) {
                           std::string name = version.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(OldPeerTest, AnOldClientAndAnOldWorkerAreServedByTodaysCoordinator) {
  auto cluster = LocalCluster::Start({.programs = LOOPFLEET_BIN_DIR, .workers = 0});
  ASSERT_TRUE(cluster.has_value()) << cluster.error().message;

  OldPeer client(cluster->address());
  for (const auto& hello : FramesWith<wire::ClientHello>(client_, Way::kToCoordinator, RequestOf)) {
    client.Say(hello.bytes);
  }
  ASSERT_TRUE(client.Await<wire::Welcome>(ReplyOf));
  const auto submits = FramesWith<wire::SubmitJobs>(client_, Way::kToCoordinator, RequestOf);
  ASSERT_EQ(submits.size(), 1U);
  client.Say(submits.front().bytes);
  const auto accepted = client.Await<wire::Accepted>(ReplyOf);
  ASSERT_TRUE(accepted);
  EXPECT_EQ(*accepted,
            FramesWith<wire::Accepted>(client_, Way::kFromCoordinator, ReplyOf).front().means);

  OldPeer worker(cluster->worker_address());
  const auto hellos = FramesWith<wire::WorkerHello>(worker_, Way::kToCoordinator, WorkerSays);
  ASSERT_EQ(hellos.size(), 1U);
  worker.Say(hellos.front().bytes);
  ASSERT_TRUE(worker.Await<wire::WorkerWelcome>(CommandOf));
  // With a fresh database and the same jobs, today's coordinator numbers leases as the old one did.
  // If that ever changes, the recorded frames must be sent with the new numbers.
  auto unleased = LeasesIn(FramesWith<wire::Leases>(worker_, Way::kFromCoordinator, CommandOf));
  ASSERT_FALSE(unleased.empty());
  const std::size_t leases = unleased.size();
  const auto beats = FramesWith<wire::Heartbeat>(worker_, Way::kToCoordinator, WorkerSays);
  ASSERT_FALSE(beats.empty());
  const std::string& beat = beats.front().bytes;
  while (!unleased.empty()) {
    const auto granted = worker.Await<wire::Leases>(CommandOf, beat);
    ASSERT_TRUE(granted);
    for (const wire::Lease& lease : granted->leases) {
      EXPECT_EQ(unleased.erase(lease.lease.value), 1U) << "lease " << lease.lease.value;
    }
  }
  worker.Say(beat);
  for (const auto& reports : FramesWith<wire::Reports>(worker_, Way::kToCoordinator, WorkerSays)) {
    worker.Say(reports.bytes);
  }
  for (std::size_t stored = 0; stored < leases;) {
    const auto command = worker.Await<wire::ReportsStored>(CommandOf, beat);
    ASSERT_TRUE(command);
    stored += command->leases.size();
  }

  // Repeats the old client's fetches until all outcomes exist: it reads the same as then.
  std::map<std::uint32_t, Outcome> then;
  for (const auto& page : FramesWith<wire::OutcomePage>(client_, Way::kFromCoordinator, ReplyOf)) {
    for (const Outcome& outcome : page.means.outcomes) then.emplace(outcome.job.index, outcome);
  }
  ASSERT_EQ(then.size(), kJobs);
  const auto fetches = FramesWith<wire::FetchOutcomes>(client_, Way::kToCoordinator, RequestOf);
  ASSERT_FALSE(fetches.empty());
  ASSERT_EQ(fetches.front().means.after_sequence, 0U);
  std::map<std::uint32_t, Outcome> now;
  while (now.size() < kJobs) {
    client.Say(fetches.front().bytes);
    const auto page = client.Await<wire::OutcomePage>(ReplyOf);
    ASSERT_TRUE(page);
    for (const Outcome& outcome : page->outcomes) now.emplace(outcome.job.index, outcome);
  }
  for (const auto& [index, outcome] : then) {
    SCOPED_TRACE(index);
    EXPECT_EQ(now.at(index).attempts, outcome.attempts);
    EXPECT_EQ(now.at(index).source, outcome.source);
    ASSERT_EQ(now.at(index).evaluation.ok(), outcome.evaluation.ok());
    if (outcome.evaluation.ok()) {
      EXPECT_EQ(now.at(index).evaluation.subject, outcome.evaluation.subject);
      EXPECT_EQ(now.at(index).evaluation.measurement(), outcome.evaluation.measurement());
    } else {
      EXPECT_EQ(now.at(index).evaluation.failure().code, outcome.evaluation.failure().code);
    }
  }

  const auto goodbyes = FramesWith<wire::Goodbye>(worker_, Way::kToCoordinator, WorkerSays);
  ASSERT_EQ(goodbyes.size(), 1U);
  worker.Say(goodbyes.front().bytes);
  auto today = Client::Connect({.address = cluster->address()});
  ASSERT_TRUE(today.has_value()) << today.error().message;
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (std::chrono::steady_clock::now() < end) {
    const auto list = today->ListWorkers();
    ASSERT_TRUE(list.has_value()) << list.error().message;
    if (list->workers.empty()) return;
    std::this_thread::sleep_for(20ms);
  }
  FAIL() << "the old worker's goodbye was not understood";
}

// It would pass over the field and report a worse figure than the job accepts.
TEST_P(OldPeerTest, AJobThatAnOldWorkerWouldMisunderstandIsNotGivenToIt) {
  auto cluster = LocalCluster::Start({.programs = LOOPFLEET_BIN_DIR, .workers = 0});
  ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
  auto client = Client::Connect({.address = cluster->address()});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  const auto submits = FramesWith<wire::SubmitJobs>(client_, Way::kToCoordinator, RequestOf);
  std::vector<JobSpec> jobs = submits.front().means.jobs;
  jobs.resize(2);
  jobs[0].min_grade = Grade::kA;
  const auto batch = client->Submit(jobs);
  ASSERT_TRUE(batch.has_value()) << batch.error().message;

  OldPeer worker(cluster->worker_address());
  worker.Say(FramesWith<wire::WorkerHello>(worker_, Way::kToCoordinator, WorkerSays).front().bytes);
  const auto granted = worker.Await<wire::Leases>(CommandOf);
  ASSERT_TRUE(granted);
  ASSERT_EQ(granted->leases.size(), 1U);
  EXPECT_EQ(granted->leases[0].job, (JobId{.batch = *batch, .index = 1}));
  const auto why = client->ExplainJob({.batch = *batch, .index = 0});
  ASSERT_TRUE(why.has_value()) << why.error().message;
  EXPECT_EQ(why->state, wire::JobState::kQueued);
  EXPECT_NE(why->reason.find("protocol 1.1"), std::string::npos) << why->reason;
}

TEST_P(OldPeerTest, TodaysWorkerServesAnOldCoordinator) {
  const auto welcomes = FramesWith<wire::WorkerWelcome>(worker_, Way::kFromCoordinator, CommandOf);
  const auto leases = FramesWith<wire::Leases>(worker_, Way::kFromCoordinator, CommandOf);
  const auto beats = FramesWith<wire::HeartbeatAnswer>(worker_, Way::kFromCoordinator, CommandOf);
  const auto stored = FramesWith<wire::ReportsStored>(worker_, Way::kFromCoordinator, CommandOf);
  ASSERT_FALSE(welcomes.empty() || leases.empty() || beats.empty() || stored.empty());
  std::map<std::uint64_t, Evaluation> then;
  for (const auto& reports : FramesWith<wire::Reports>(worker_, Way::kToCoordinator, WorkerSays)) {
    for (const wire::Report& report : reports.means.reports) {
      then.emplace(report.lease.value, report.evaluation);
    }
  }
  ASSERT_EQ(then.size(), LeasesIn(leases).size());

  wire::PrivateDirectory directory;
  wire::Context context;
  auto router = wire::Router::Bind(context, fmt::format("ipc://{}/workers", directory.path()), {});
  ASSERT_TRUE(router.has_value()) << router.error().message;
  wire::Poller poller;
  poller.Add(*router);
  auto worker = Subprocess::Start({.argv = {LOOPFLEET_BIN_DIR "/loopfleet-worker", "--coordinator",
                                            router->endpoint(), "--http", "127.0.0.1:0"}});
  ASSERT_TRUE(worker.has_value()) << worker.error().message;
  std::set<std::uint64_t> reported;
  bool said_goodbye = false;
  bool may_be_gone = false;  // after it was stopped while waiting for the timing core, its last
                             // heartbeat may stay unanswered
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (!said_goodbye && std::chrono::steady_clock::now() < end) {
    poller.Wait(20ms);
    const auto received = router->Receive();
    if (!received) continue;
    const auto say = [&](const std::string& frame) {
      const auto sent = router->Send(received->peer, frame);
      EXPECT_TRUE(sent == wire::SendResult::kSent || may_be_gone);
    };
    const auto message = wire::DecodeWorkerMessage(received->frame);
    ASSERT_TRUE(message.has_value());
    if (std::holds_alternative<wire::WorkerHello>(*message)) {
      say(welcomes.front().bytes);
      for (const auto& granted : leases) say(granted.bytes);
    } else if (std::holds_alternative<wire::Heartbeat>(*message)) {
      say(beats.front().bytes);
    } else if (std::holds_alternative<wire::Goodbye>(*message)) {
      said_goodbye = true;
    } else if (const auto* reports = std::get_if<wire::Reports>(&*message)) {
      for (const wire::Report& report : reports->reports) {
        SCOPED_TRACE(report.lease.value);
        ASSERT_TRUE(then.contains(report.lease.value));
        // The same tree under the same key; a busy host may give no figure.
        EXPECT_EQ(report.evaluation.subject, then.at(report.lease.value).subject);
        EXPECT_TRUE(report.evaluation.ok() ||
                    report.evaluation.failure().code == FailureCode::kUnstableTiming);
        reported.insert(report.lease.value);
      }
      if (reported.size() == then.size()) {
        for (const auto& acknowledged : stored) say(acknowledged.bytes);
        may_be_gone = true;
        worker->Signal(SIGTERM);
      }
    }
  }
  EXPECT_TRUE(said_goodbye);
  const auto status = worker->WaitFor(kLimit);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 0);
}

TEST_P(OldPeerTest, TodaysClientReadsAnOldCoordinator) {
  // The old coordinator's answers, by the number of the request.
  std::map<std::uint64_t, std::string> answers;
  std::vector<Outcome> then;
  for (const std::string& frame : client_.Of(Way::kFromCoordinator)) {
    const auto reply = wire::DecodeCoordinatorReply(frame);
    ASSERT_TRUE(reply.has_value());
    answers.emplace(reply->number, frame);
    if (const auto* page = std::get_if<wire::OutcomePage>(&reply->message)) {
      then.insert(then.end(), page->outcomes.begin(), page->outcomes.end());
    }
  }
  wire::PrivateDirectory directory;
  wire::Context context;
  auto router = wire::Router::Bind(context, fmt::format("ipc://{}/clients", directory.path()), {});
  ASSERT_TRUE(router.has_value()) << router.error().message;
  const std::string endpoint = router->endpoint();
  std::jthread coordinator([&](const std::stop_token& stop) {
    wire::Poller poller;
    poller.Add(*router);
    while (!stop.stop_requested()) {
      poller.Wait(20ms);
      const auto received = router->Receive();
      if (!received) continue;
      const auto request = wire::DecodeClientRequest(received->frame);
      if (!request || !answers.contains(request->number)) continue;
      router->Send(received->peer, answers.at(request->number));
    }
  });
  const auto submits = FramesWith<wire::SubmitJobs>(client_, Way::kToCoordinator, RequestOf);
  ASSERT_EQ(submits.size(), 1U);
  auto client = Client::Connect({.address = endpoint});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  std::vector<Outcome> now;
  const auto info = client->Evaluate(submits.front().means.jobs,
                                     [&](const Outcome& outcome) { now.push_back(outcome); });
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->state, wire::BatchState::kFinished);
  EXPECT_EQ(now, then);
}

}  // namespace
}  // namespace loopfleet::client
