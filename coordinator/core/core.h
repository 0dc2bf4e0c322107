#pragma once
// Core: queue and dispatch as a pure state machine. Given the same events at the same moments it
// has the same effects: it knows no socket, clock, thread, file or random number, and iterates over
// nothing unordered. The shell (event_loop.h) feeds it; a simulation can, too.
//
// Belongs to one thread. What an effect promises to be on disk is on disk: see PendingCommits.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/contract/effect.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/core/contract/limits.h"
#include "coordinator/core/invariants.h"
#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

class Core {
 public:
  struct Options {
    Limits limits;
    std::string name = "loopfleet-coordinator";  // for people
  };
  explicit Core(Options options);

  // The first event must be Recovered. Moments must not go back.
  Effects On(Event event, Moment now);

  // ---- what the shell has to know to make events, and shows in metrics

  // Whose connection it is; empty before a hello.
  std::optional<Uuid> ClientOf(const PeerId& peer, const KeyText& key = {}) const {
    return state_.clients.ClientOf(peer, key);
  }
  // Whose part of the coordinator's time a request of this connection takes; those who said no
  // hello share one part, or with keys one for each.
  Uuid PayerOf(const PeerId& peer, const KeyText& key) const {
    return state_.clients.PayerOf(peer, key);
  }
  // Why these jobs would be refused, whatever they are: to be asked before work is spent on them.
  std::optional<Failure> CheckRoomFor(const Uuid& client, const wire::SubmitJobs& submit,
                                      Instant now) const;
  std::size_t Queued(Placement placement) const { return state_.ready.Size(placement); }
  std::size_t Leased() const;
  // Whether it is unfinished, and here by now (JobsRecovered).
  bool Has(JobId job) const { return state_.jobs.Find(job) != nullptr; }
  std::size_t Workers(wire::WorkerState state) const { return state_.workers.CountIn(state); }
  bool HasWritesUnderWay() const { return !state_.commits.empty(); }

  const State& state() const { return state_; }  // to look at
  void CheckInvariants() const { coordinator::CheckInvariants(state_); }

 private:
  State state_;
};

}  // namespace loopfleet::coordinator
