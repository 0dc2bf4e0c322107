#pragma once
// State: all that the core knows: a dozen small tables, each with its own invariant, and what ties
// them together. Changed by core/handlers and core/dispatch only.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/core/contract/limits.h"
#include "coordinator/core/tables/affinity_table.h"
#include "coordinator/core/tables/batch_table.h"
#include "coordinator/core/tables/client_table.h"
#include "coordinator/core/tables/client_usage.h"
#include "coordinator/core/tables/deadline_table.h"
#include "coordinator/core/tables/job_table.h"
#include "coordinator/core/tables/lease_table.h"
#include "coordinator/core/tables/long_poll_table.h"
#include "coordinator/core/tables/pending_commits.h"
#include "coordinator/core/tables/ready_queue.h"
#include "coordinator/core/tables/retry_table.h"
#include "coordinator/core/tables/single_flight_table.h"
#include "coordinator/core/tables/unschedulable_table.h"
#include "coordinator/core/tables/wall_history.h"
#include "coordinator/core/tables/worker_registry.h"

namespace loopfleet::coordinator {

// Of the last run's jobs, some are still to be read.
struct Recovering {
  std::size_t jobs_to_come = 0;  // about
  std::set<JobId> early;         // came before their turn; as many as workers hold
};

// Candidates up to this rank found nothing to do when the queue had changed so often.
struct Offered {
  std::uint64_t changes = 0;
  std::uint64_t rank = 0;
};

// What one event began to end, and later ones go on with (bulk_completion.h). Those who are owed
// an answer are in the SingleFlightTable.
struct Endings {
  std::deque<BatchId> cancelled;  // that have, or had a moment ago, jobs without an outcome
  bool piece_under_way = false;   // to disk
};

enum class Service : std::uint8_t { kServing, kDraining };

struct State {
  Limits limits;
  std::string name;  // of this coordinator, for people

  std::uint64_t epoch = 0;  // 0: Recovered has not come yet
  std::uint64_t next_batch = 1;
  Service service = Service::kServing;
  Instant grants_from{};     // nothing is granted before: workers re-attach
  Instant reattach_until{};  // who comes before goes on, even with what others were given since
  Instant ticked_at{};       // the last Tick
  std::optional<Recovering> recovering;
  Instant next_look_for_idle{};   // for clients whose load can be forgotten
  Instant next_look_for_open{};   // for batches that were left open
  std::size_t arriving_jobs = 0;  // in acceptances on their way to disk or held back

  // The clock that each hardware class states its times at: the first worker's of that class, kept
  // with its results. As many as there are kinds of hardware.
  std::map<std::string, double> reference_mhz;

  // What operators drained, by target; at most Limits::max_drains. On disk, or on its way there.
  std::map<std::string, storage::WorkersDrained> drains;

  BatchTable batches;
  JobTable jobs;
  ReadyQueue ready;
  UnschedulableTable unschedulable;
  DeadlineTable deadlines;
  AffinityTable affinities;
  // How far ready jobs were offered: by device, see GrantLeases.
  std::array<Offered, 2> offered;
  RetryTable retries;
  SingleFlightTable single_flight;
  Endings endings;
  LeaseTable leases;
  WorkerRegistry workers;
  ClientTable clients;
  ClientUsageTable usage;
  LongPollTable long_polls;
  WallHistory wall;
  PendingCommits commits;

  // With those on their way to disk and those still to be read.
  std::size_t UnfinishedJobs() const {
    return jobs.size() + arriving_jobs + (recovering ? recovering->jobs_to_come : 0);
  }
};

// One event being dealt with.
struct Transaction {
  State& state;
  Moment now;
  Effects effects;
  // Outcomes made so far: one Persist at the end of the turn.
  std::vector<storage::Write> writes;
  OutcomeCommit commit;
  JobsWereFinished finished;  // an outcome each

  Limits& limits() { return state.limits; }
};

}  // namespace loopfleet::coordinator
