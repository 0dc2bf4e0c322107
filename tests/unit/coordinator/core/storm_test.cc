// Seeded storms of random events against the core, with its invariants checked after each: repeated
// and appended submissions, workers that come, go, repeat and lose messages, cancellations, a slow
// or full disk, restarts. When the storm ends, every accepted job must finish exactly once.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "common/base/random.h"
#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

struct StormWorker {
  PeerId peer;
  std::uint8_t name = 0;
  DeviceKind device = DeviceKind::kCpu;
  std::map<LeaseId, wire::Lease> held;
};

class Storm {
 public:
  explicit Storm(std::uint64_t seed)
      : random_(seed),
        h_({.max_unfinished_jobs = 60,
            .max_held_appends = 2,
            .max_undurable_outcomes = 8,
            .no_worker_grace = seconds(10)}) {
    for (std::uint8_t i = 0; i < 3; ++i) {
      workers_.push_back({.name = static_cast<std::uint8_t>(50 + i),
                          .device = i == 2 ? DeviceKind::kCuda : DeviceKind::kCpu});
    }
    GreetEverybody();
  }

  void Rage(int steps) {
    for (int i = 0; i < steps; ++i) {
      Step();
      HearReplies();
      HearCommands(Loss::kSome);
    }
  }

  // Faults stop: every accepted job must finish.
  void Calm() {
    for (auto& worker : workers_) Reconnect(worker);
    h_.Write();  // accepts pending submissions, too
    for (int round = 0; round < 300 && h_.disk.outcomes.size() < h_.disk.jobs.size(); ++round) {
      h_.Write();
      HearReplies();
      HearCommands(Loss::kNone);
      for (auto& worker : workers_) {
        for (const auto& [id, lease] : std::map(worker.held)) h_.Report(worker.peer, lease);
        h_.Heartbeat(worker.peer, HeldBy(worker));
      }
      h_.Pass(seconds(1));
    }
    h_.Write();
  }

  void CheckTheEnd() {
    for (const auto& [job, spec] : h_.disk.jobs) {
      EXPECT_TRUE(h_.disk.outcomes.contains(job)) << Describe(job);
    }
    EXPECT_EQ(h_.disk.outcomes.size(), h_.disk.jobs.size());
    EXPECT_EQ(h_.core->state().jobs.size(), 0u);
    EXPECT_EQ(h_.core->state().single_flight.size(), 0u);
    EXPECT_FALSE(h_.core->HasWritesUnderWay());
    for (const auto& [job, times] : granted_) {
      // Promise I7; leases returned unrun do not count.
      EXPECT_LE(times, 3 * static_cast<int>(h_.disk.starts) + unrun_[job]) << job.index;
    }
  }

  std::size_t jobs() const { return h_.disk.jobs.size(); }
  std::size_t measured() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        h_.disk.outcomes, [](const auto& entry) { return entry.second.evaluation.ok(); }));
  }

 private:
  enum class Loss { kNone, kSome };

  // The state of an unfinished job.
  std::string Describe(JobId id) const {
    const Job* job = h_.core->state().jobs.Find(id);
    if (job == nullptr) return fmt::format("job {} is gone", id);
    static constexpr std::array kProgress = {"queued", "leased", "following"};
    std::string text = fmt::format("job {}: {}, placement {}, {} attempts", id,
                                   kProgress.at(job->progress.index()),
                                   static_cast<int>(job->placement), job->attempts());
    if (const auto* leased = std::get_if<Leased>(&job->progress)) {
      const LeaseRecord* lease = h_.core->state().leases.Find(leased->lease);
      text += fmt::format(", lease {} of {}", lease->id,
                          h_.core->state().workers.Find(lease->worker)->facts.name);
    }
    return text;
  }

  bool Chance(std::uint64_t one_in) { return random_.Below(one_in) == 0; }

  void GreetEverybody() {
    for (const PeerId peer : {"c", "d"}) h_.Ask(peer, wire::ClientHello{.client = ClientOf(peer)});
    for (auto& worker : workers_) Reconnect(worker);
  }
  static Uuid ClientOf(const PeerId& peer) { return Named(peer == "c" ? 1 : 2); }

  void Reconnect(StormWorker& worker) {
    worker.peer = "w" + std::to_string(++connections_);
    Greet(worker);
  }
  void Greet(StormWorker& worker) {
    std::vector<wire::HeldLease> held;
    for (const auto& [id, lease] : worker.held) held.push_back({id, lease.job});
    h_.WorkerHello(worker.peer, worker.name,
                   {.credit = 1 + worker.name % 3U, .device = worker.device, .held = held});
  }
  static std::vector<LeaseId> HeldBy(const StormWorker& worker) {
    std::vector<LeaseId> held;
    for (const auto& [id, lease] : worker.held) held.push_back(id);
    return held;
  }
  StormWorker& AnyWorker() { return workers_[random_.Below(workers_.size())]; }

  void Step() {
    switch (random_.Below(16)) {
      case 0:
      case 1:
      case 2: return SubmitSomething();
      case 3:
      case 4:
      case 5: return ReportSomething();
      case 6:
      case 7:
      case 8:
        if (!h_.unwritten.empty()) h_.WriteOne();
        return;
      case 9: return h_.Pass(milliseconds(100 + random_.Below(Chance(5) ? 4000 : 300)));
      case 10:
      case 11: return h_.Heartbeat(AnyWorker().peer, HeldBy(AnyWorker()));
      case 12: h_.Ask("c", wire::FetchOutcomes{.batch = AnyBatch(), .wait_ms = 2000}); return;
      case 13: return Misfortune();
      case 14: return h_.RefuseWrites(FailureCode::kStorageFull);
      default: return WorkerGoes();
    }
  }

  BatchId AnyBatch() { return BatchId{1 + random_.Below(h_.disk.batches.size() + 2)}; }

  JobSetup AnyJob() {
    JobSetup wish{.tree = static_cast<std::uint8_t>(random_.Below(6))};
    wish.placement = static_cast<Placement>(random_.Below(3));
    if (Chance(5)) wish.freshness = Freshness::kMeasureAgain;
    if (Chance(8)) wish.invalid = Failure{.code = FailureCode::kInvalidAction};
    if (Chance(8)) wish.stored = true;
    return wish;
  }

  void SubmitSomething() {
    const PeerId peer = Chance(2) ? "c" : "d";
    if (Chance(4) && !sent_.empty()) {  // repeat a submission
      const auto& [jobs, sent] = sent_[random_.Below(sent_.size())];
      h_.Submit(peer, jobs, sent);
      return;
    }
    std::vector<JobSetup> jobs(random_.Below(5));
    for (JobSetup& job : jobs) job = AnyJob();
    Harness::Sent sent{.request = ++requests_};
    if (Chance(3)) sent.append_to = AnyBatch();
    if (Chance(3)) sent.end = wire::BatchEnd::kMoreFollows;
    if (requests_ < 250) {
      sent_.emplace_back(jobs, sent);
      h_.Submit(peer, jobs, sent);
    }
  }

  void ReportSomething() {
    StormWorker& worker = AnyWorker();
    if (worker.held.empty()) return;
    auto lease = worker.held.begin();
    std::advance(lease, random_.Below(worker.held.size()));
    switch (random_.Below(9)) {
      case 8: return h_.Report(AnyWorker().peer, lease->second);  // perhaps by the wrong worker
      case 0: return h_.ReportFailure(worker.peer, lease->second, FailureCode::kWrongOutput);
      case 1: return h_.ReportFailure(worker.peer, lease->second, FailureCode::kDeviceFault);
      default: return h_.Report(worker.peer, lease->second);  // kept until acknowledged
    }
  }

  void Misfortune() {
    switch (random_.Below(6)) {
      case 0: {
        h_.Restart();
        return GreetClientsOnly();
      }
      case 1: {
        h_.Ask("c", wire::CancelBatch{.batch = AnyBatch()});
        return;
      }
      case 2: return h_.Give(ClientUnreachable{"d"});
      case 3: return h_.Give(WorkerUnreachable{.peer = AnyWorker().peer});
      default: return h_.Pass(seconds(1));
    }
  }
  void GreetClientsOnly() {
    for (const PeerId peer : {"c", "d"}) h_.Ask(peer, wire::ClientHello{.client = ClientOf(peer)});
  }

  void WorkerGoes() {
    StormWorker& worker = AnyWorker();
    switch (random_.Below(4)) {
      case 0:  // an orderly end
        h_.Say(worker.peer, wire::Goodbye{.returned = HeldBy(worker)});
        for (const auto& [id, lease] : worker.held) ++unrun_[lease.job];
        worker.held.clear();
        return Reconnect(worker);
      case 1:  // killed and restarted
        worker.held.clear();
        worker.name = next_name_++;
        return Reconnect(worker);
      case 2: return Reconnect(worker);
      default: return h_.Say(worker.peer, wire::Heartbeat{.drain = wire::DrainState::kDraining});
    }
  }

  void HearReplies() {
    for (const auto& reply : h_.replies) {
      const auto* accepted = std::get_if<wire::Accepted>(&reply.message);
      if (accepted == nullptr) continue;
      const auto batch = h_.disk.batches.find(accepted->batch);  // promise I1
      ASSERT_NE(batch, h_.disk.batches.end());
      ASSERT_LE(accepted->first_index + accepted->job_count, batch->second.job_count);
    }
    h_.replies.clear();
    h_.pages.clear();
    h_.from_storage.clear();
  }

  void HearCommands(Loss loss) {
    std::vector<SendToWorker> commands;
    std::swap(commands, h_.commands);
    for (const SendToWorker& sent : commands) {
      const auto worker = std::ranges::find(workers_, sent.peer, &StormWorker::peer);
      if (const auto* leases = std::get_if<wire::Leases>(&sent.command)) {
        for (const auto& lease : leases->leases) ++granted_[lease.job];
      }
      if (worker == workers_.end() || (loss == Loss::kSome && Chance(15))) continue;
      Hear(*worker, sent.command);
    }
  }

  void Hear(StormWorker& worker, const wire::WorkerCommand& command) {
    if (const auto* leases = std::get_if<wire::Leases>(&command)) {
      for (const auto& lease : leases->leases) worker.held[lease.lease] = lease;
    } else if (const auto* revoke = std::get_if<wire::Revoke>(&command)) {
      for (const LeaseId lease : revoke->leases) worker.held.erase(lease);
    } else if (const auto* stored = std::get_if<wire::ReportsStored>(&command)) {
      for (const LeaseId lease : stored->leases) worker.held.erase(lease);
    } else if (std::holds_alternative<wire::HelloWanted>(command)) {
      Greet(worker);
    }
  }

  SplitMix64 random_;
  Harness h_;
  std::vector<StormWorker> workers_;
  std::vector<std::pair<std::vector<JobSetup>, Harness::Sent>> sent_;
  std::map<JobId, int> granted_;
  std::map<JobId, int> unrun_;
  std::uint8_t requests_ = 0;
  std::uint8_t next_name_ = 53;  // names are never reused
  int connections_ = 0;
};

TEST(Storm, EverythingAcceptedIsFinishedExactlyOnce) {
  std::size_t jobs = 0;
  std::size_t measured = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Storm storm(seed);
    storm.Rage(600);
    storm.Calm();
    storm.CheckTheEnd();
    if (testing::Test::HasFailure()) return;
    jobs += storm.jobs();
    measured += storm.measured();
  }
  // The storms finish real work; otherwise the checks above show nothing.
  EXPECT_GT(jobs, 2000u);
  EXPECT_GT(measured, jobs / 4);
}

}  // namespace
}  // namespace loopfleet::coordinator
