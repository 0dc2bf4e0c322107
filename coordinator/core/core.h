#pragma once
// Core: queue and dispatch as a pure state machine. The same events at the same moments give the
// same effects: it uses no socket, clock, thread, file or random number, and iterates over no
// unordered container. The shell (event_loop.h) drives it; so can a simulation.
//
// Belongs to one thread. Whatever an effect states to be on disk is on disk: see PendingCommits.

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
    std::string name = "loopfleet-coordinator";  // for display
    QuestionHashKey hash_key{};  // secret, so that no client can slow the table of questions down
  };
  explicit Core(Options options);

  // The first event must be Recovered. Moments must not decrease.
  Effects On(Event event, Moment now);

  // ---- for the shell: to make events and to show metrics

  // The client of this connection; nullopt before its hello.
  std::optional<Uuid> ClientOf(const PeerId& peer, const KeyText& key = {}) const {
    return state_.clients.ClientOf(peer, key);
  }
  // The client that this connection's requests are charged to, for sharing the coordinator's time.
  // Connections without a hello share one account, or with keys one account per key.
  Uuid PayerOf(const PeerId& peer, const KeyText& key) const {
    return state_.clients.PayerOf(peer, key);
  }
  // The failure with which any submission of these jobs would be refused now; nullopt if there is
  // room. To be asked before work is spent on resolving them.
  std::optional<Failure> CheckRoomFor(const Uuid& client, const wire::SubmitJobs& submit,
                                      Instant now) const;
  std::size_t Queued(Placement placement) const { return state_.ready.Size(placement); }
  std::size_t Leased() const;
  // Whether the job is unfinished and already loaded (JobsRecovered).
  bool Has(JobId job) const { return state_.jobs.Find(job) != nullptr; }
  bool HasWritesUnderWay() const { return !state_.commits.empty(); }
  // How many workers, demands, batches and clients the tables went through so far: what an event
  // costs that looks for something. The simulation bounds it.
  std::uint64_t rows_seen() const {
    return state_.workers.rows_seen() + state_.ready.rows_seen() + state_.batches.rows_seen() +
           state_.usage.rows_seen();
  }

  const State& state() const { return state_; }  // read-only access
  void CheckInvariants() const { coordinator::CheckInvariants(state_); }

 private:
  State state_;
};

}  // namespace loopfleet::coordinator
