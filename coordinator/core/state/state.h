#pragma once
// State: everything the core knows: a dozen small tables, each with its own invariant, and the
// fields that connect them. Modified by core/handlers and core/dispatch only.

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
#include "coordinator/core/tables/acceptance_times.h"
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
#include "coordinator/core/tables/wall_clock_history.h"
#include "coordinator/core/tables/worker_registry.h"

namespace loopfleet::coordinator {

// Some jobs of the last run are still to be read.
struct Recovering {
  std::size_t jobs_to_come = 0;  // approximate
  std::set<JobId> early;         // beyond: the longest silent says hello again
};

// Workers up to this rank found nothing to do among the demands up to this number.
struct Offered {
  std::uint64_t demand = 0;
  std::uint64_t rank = 0;
};

// Endings that one event started and later events continue (bulk_completion.h). Jobs that are still
// owed an answer are in the SingleFlightTable.
struct Endings {
  std::deque<JobId> running;      // when their batch was cancelled; each may have ended since
  std::deque<BatchId> cancelled;  // may still have jobs without an outcome
  bool piece_under_way = false;   // a piece is on its way to disk
};

// The clock at which the times of a hardware class are stated.
struct KnownClock {
  double mhz = 0;
  bool has_outcomes = false;  // stored with it, so it cannot change
};

enum class Service : std::uint8_t { kServing, kDraining };

struct State {
  Limits limits;
  std::string name;  // of this coordinator, for display

  std::uint64_t epoch = 0;  // 0: before Recovered
  Uuid incarnation;         // of the database
  std::uint64_t next_batch = 1;
  Service service = Service::kServing;
  Instant grants_from{};  // nothing is granted before: workers re-attach
  // Until then a returning worker keeps jobs of the last run, even those granted to others since.
  Instant reattach_until{};
  Instant started_at{};
  Instant ticked_at{};  // the last Tick
  std::optional<Recovering> recovering;
  Instant next_look_for_idle{};   // next scan for idle clients to forget
  Instant next_look_for_open{};   // next scan for abandoned open batches
  std::size_t arriving_jobs = 0;  // in acceptances on their way to disk or held back

  // By hardware class: the clock of the first worker of the class, stored with its results. At most
  // Limits::max_hardware_classes.
  std::map<std::string, KnownClock> reference_clocks;

  // When a worker with this key was last suspected; older than Limits::min_drift: may be missing.
  // Workers without a key are entered by name.
  std::map<std::string, Instant> suspected_at;

  // Standing drains by target; at most Limits::max_drains. On disk, or on their way there.
  std::map<std::string, storage::WorkersDrained> drains;

  BatchTable batches;
  JobTable jobs;
  ReadyQueue ready;
  AcceptanceTimes queued_since;
  UnschedulableTable unschedulable;
  DeadlineTable deadlines;
  AffinityTable affinities;
  // How far ready jobs have been offered, by device: see GrantLeases.
  std::array<Offered, 2> offered;
  RetryTable retries;
  SingleFlightTable single_flight;
  Endings endings;
  LeaseTable leases;
  WorkerRegistry workers;
  ClientTable clients;
  ClientUsageTable usage;
  LongPollTable long_polls;
  WallClockHistory wall;
  PendingCommits commits;

  // Including jobs on their way to disk and jobs still to be read.
  std::size_t UnfinishedJobs() const {
    return jobs.size() + arriving_jobs + (recovering ? recovering->jobs_to_come : 0);
  }
};

// The handling of one event.
struct Transaction {
  State& state;
  Moment now;
  Effects effects;
  // Outcomes made so far; persisted together at the end of the transaction.
  std::vector<storage::Write> writes;
  OutcomeCommit commit;
  JobsWereFinished finished;  // one entry per outcome

  Limits& limits() { return state.limits; }
};

}  // namespace loopfleet::coordinator
