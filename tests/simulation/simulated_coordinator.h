#pragma once
// SimulatedCoordinator: the real core and the real write backlog behind a model of the shell, in a
// process that can be killed at any moment, stopped or suspended.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "coordinator/core/core.h"
#include "coordinator/shell/write_backlog.h"
#include "tests/simulation/agenda.h"
#include "tests/simulation/disk/disk.h"
#include "tests/simulation/fault_mix.h"
#include "tests/simulation/network.h"
#include "tests/simulation/planted/planted_bug.h"
#include "tests/simulation/rules/checker.h"
#include "tests/simulation/trace.h"

namespace loopfleet::simulation {

class SimulatedCoordinator {
 public:
  struct Parts {
    Agenda& agenda;
    Trace& trace;
    const FaultMix& mix;
    ClientPort& clients;
    WorkerPort& workers;
    Disk& disk;  // without a planted bug, as the checker sees it
    Checker& checker;
    PlantedBug* bug = nullptr;
  };
  SimulatedCoordinator(const Parts& parts, std::uint64_t seed);

  void Start();
  void Heal();  // no more faults from now on
  bool is_running() const { return core_ != nullptr; }
  const coordinator::Core& core() const { return *core_; }
  bool has_writes_under_way() const { return core_ && core_->HasWritesUnderWay(); }

 private:
  using Incoming = std::variant<std::pair<coordinator::PeerId, wire::ClientRequest>,
                                std::pair<coordinator::PeerId, wire::WorkerMessage>>;
  struct Doer;  // one overload per kind of effect

  coordinator::Moment Now() const;
  double Rate(Fault fault) const { return is_healed_ ? 0 : parts_.mix[fault]; }
  void Give(coordinator::Event event);
  void Run(coordinator::Effects effects, std::vector<coordinator::Event>& next);
  void Recover(storage::Recovery recovery);
  void RecoverSomeLater();
  void RecoverEarly(const wire::WorkerMessage& message);
  void Deliver(Incoming incoming);
  void OnClientRequest(const coordinator::PeerId& peer, wire::ClientRequest request);
  void OnSubmit(const coordinator::PeerId& peer, std::uint64_t number, wire::SubmitJobs submit);
  void OnWorkerMessage(const coordinator::PeerId& peer, wire::WorkerMessage message);
  void Reply(const coordinator::PeerId& peer, std::uint64_t number, wire::CoordinatorMessage what,
             std::vector<coordinator::Event>& next);

  void Tick();
  void SecondPasses();  // draws faults, once a second
  void StartWriting();
  void FinishWriting(std::span<const storage::Write> group);
  void Thaw();
  void Kill(Disk::Crash how);
  void Stop();
  void WaitUntilWritten(Instant stop_by);
  void Exit();
  void End();  // common to all ways to end
  void RestartLater();
  template <class Action>
  void After(Nanos delay, Action action);  // dropped if this life ends first

  const Parts parts_;
  std::unique_ptr<Disk> wrapped_;  // by a planted bug
  Disk* disk_;                     // as the coordinator sees it
  Dice dice_;
  Dice recovery_dice_;  // separate, so that other choices do not depend on the recovered amount
  std::deque<coordinator::Recovered::Job> to_recover_;
  std::unique_ptr<coordinator::Core> core_;
  coordinator::WriteBacklog backlog_;
  std::vector<storage::Write> group_;  // being written
  bool is_writing_ = false;
  bool is_stopping_ = false;
  bool is_healed_ = false;
  std::uint64_t life_ = 0;
  std::optional<int> effects_to_live_;
  bool is_full_ = false;
  Instant frozen_until_{};
  std::deque<Incoming> unread_;
  Nanos wall_offset_{};
};

}  // namespace loopfleet::simulation
