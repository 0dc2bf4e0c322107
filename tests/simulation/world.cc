#include "tests/simulation/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/simulation/disk/model_disk.h"
#include "tests/simulation/disk/sqlite_disk.h"
#include "tests/simulation/simulated_client.h"
#include "tests/simulation/simulated_coordinator.h"
#include "tests/simulation/simulated_worker.h"

namespace loopfleet::simulation {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// After the last fault, every accepted job finishes within this time. The longest legitimate case:
// three workers are lost with a job, each noticed after seconds, behind other jobs that hang.
constexpr Nanos kPatience = minutes(30);
// A run with more steps than this is in an endless loop.
constexpr std::uint64_t kMostSteps = 2'000'000;

class World {
 public:
  World(std::uint64_t seed, const FaultMix& mix, Trace::Text text, const PlantedBugInfo* bug)
      : mix_(mix),
        trace_(text),
        pool_(mix, seed),
        disk_(MakeDisk(seed)),
        bug_(bug != nullptr ? bug->make() : nullptr),
        checker_(mix_, pool_, *disk_),
        clients_port_("c", agenda_, mix_, seed, 3),
        workers_port_("w", agenda_, mix_, seed, 4),
        coordinator_({.agenda = agenda_,
                      .trace = trace_,
                      .mix = mix_,
                      .clients = clients_port_,
                      .workers = workers_port_,
                      .disk = *disk_,
                      .checker = checker_,
                      .bug = bug_.get()},
                     seed) {
    for (std::size_t i = 0; i < mix_.workers; ++i) {
      workers_.push_back(std::make_unique<SimulatedWorker>(
          SimulatedWorker::Parts{agenda_, trace_, mix_, pool_, workers_port_, checker_,
                                 reports_made_},
          i, seed));
    }
    for (std::size_t i = 0; i < mix_.clients; ++i) {
      clients_.push_back(std::make_unique<SimulatedClient>(
          SimulatedClient::Parts{agenda_, trace_, mix_, pool_, clients_port_, checker_,
                                 known_batches_},
          i, seed));
    }
  }

  Verdict Run() {
    coordinator_.Start();
    for (auto& worker : workers_) worker->Start();
    for (auto& client : clients_) client->Start();
    const Instant start = agenda_.now();
    const Instant calm_from = start + mix_.faults_last;
    agenda_.At(calm_from, [this] { Heal(); });
    std::uint64_t steps = 0;
    while (!checker_.violation() && !IsOver()) {
      if (agenda_.now() > calm_from + kPatience || ++steps > kMostSteps) {
        GiveUp();
        break;
      }
      agenda_.Step();
    }
    if (!checker_.violation()) AwaitOpenBatches();
    if (!checker_.violation()) checker_.CheckTheEnd();
    return {.violation = checker_.violation(),
            .hash = trace_.hash(),
            .steps = steps,
            .outcomes = checker_.outcomes_seen(),
            .lasted = agenda_.now() - start};
  }

 private:
  std::unique_ptr<Disk> MakeDisk(std::uint64_t seed) const {
    if (mix_.medium == Medium::kSqlite) return std::make_unique<SqliteDisk>(seed);
    return std::make_unique<ModelDisk>();
  }

  void Heal() {
    trace_.Note(agenda_.now(), 40, 0, 0, [] { return std::string("---- no more faults"); });
    is_calm_ = true;
    clients_port_.Heal();
    workers_port_.Heal();
    coordinator_.Heal();
    for (auto& worker : workers_) worker->Heal();
    for (auto& client : clients_) client->Heal();
  }

  bool IsOver() {
    if (!is_calm_ || !coordinator_.is_running()) return false;
    for (const auto& client : clients_) {
      if (!client->is_done()) return false;
    }
    return !coordinator_.has_writes_under_way() && checker_.AllFinished();
  }

  bool IsSomethingOpen() const {
    return std::ranges::any_of(disk_->AllBatches(), [](const storage::StoredBatch& batch) {
      return !batch.closed && !batch.cancelled;
    });
  }

  // All clients are done: a batch that is still open belongs to a client that vanished.
  void AwaitOpenBatches() {
    if (!IsSomethingOpen()) return;
    const Instant end = agenda_.now() + mix_.limits.open_batch_idle * 5 / 4;
    while (!checker_.violation() && agenda_.now() < end && IsSomethingOpen()) agenda_.Step();
    if (IsSomethingOpen()) checker_.Violate("what was left open is closed", "a batch is open");
  }

  void GiveUp() {
    std::string text = coordinator_.is_running() ? "" : "the coordinator does not run; ";
    for (const auto& client : clients_) {
      if (!client->is_done()) text += client->Describe() + "; ";
    }
    if (coordinator_.is_running() && !checker_.AllFinished()) text += "jobs are unfinished";
    checker_.Violate("I6 everything finishes", std::move(text));
  }

  const FaultMix mix_;
  Agenda agenda_;
  Trace trace_;
  JobPool pool_;
  std::unique_ptr<Disk> disk_;
  std::unique_ptr<PlantedBug> bug_;
  Checker checker_;
  ClientPort clients_port_;
  WorkerPort workers_port_;
  SimulatedCoordinator coordinator_;
  std::uint64_t reports_made_ = 0;
  std::vector<BatchId> known_batches_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::vector<std::unique_ptr<SimulatedClient>> clients_;
  bool is_calm_ = false;
};

}  // namespace

Verdict RunWorld(std::uint64_t seed, const FaultMix& mix, Trace::Text text,
                 const PlantedBugInfo* bug) {
  return World(seed, mix, text, bug).Run();
}

}  // namespace loopfleet::simulation
