#pragma once
// Limits: the bound of every table, queue and wait of the coordinator, in one place. What goes
// beyond one is refused with a typed failure that says when to try again, never dropped.

#include <chrono>
#include <cstdint>

#include "common/base/clock.h"

namespace loopfleet::coordinator {

struct Limits {
  // Tables. A waiting job takes about 1 KiB.
  std::uint32_t max_unfinished_jobs = 2'000'000;   // beyond: BUSY
  std::uint32_t max_unfinished_batches = 100'000;  // beyond: BUSY
  std::uint32_t max_jobs_per_batch = 100'000'000;  // beyond: QUOTA_EXCEEDED
  std::uint32_t max_held_appends = 16;  // messages of one batch that wait for an earlier one: BUSY
  std::uint32_t max_clients = 10'000;   // connections whose hello is remembered
  std::uint32_t max_workers = 10'000;   // beyond: BUSY
  std::uint32_t max_workers_per_key = 5'000;  // one key leaves room for others; beyond: BUSY
  // Each kind of worker (class, compiler, policy) is two more lookups for each job that it could
  // run.
  std::uint32_t max_kinds_per_key = 32;         // beyond: QUOTA_EXCEEDED
  std::uint32_t max_hardware_classes = 10'000;  // whose clock is remembered
  std::uint32_t max_lost_workers = 100;         // lost ones that are still listed
  std::uint32_t max_affinities = 100'000;       // whose worker is remembered
  std::uint32_t max_demands = 1'000;   // that jobs wait with at once; beyond: QUOTA_EXCEEDED
  std::uint32_t max_waiters = 20'000;  // FetchOutcomes that wait; beyond: BUSY
  std::uint32_t max_waiters_per_client = 2'000;  // over all its connections; beyond: QUOTA_EXCEEDED

  // Of one client: its key's name, or without keys the id that it says. Beyond: QUOTA_EXCEEDED. One
  // client cannot take what all share: these leave room for others in the totals above.
  std::uint32_t max_unfinished_jobs_per_client = 1'500'000;
  std::uint32_t max_unfinished_batches_per_client = 50'000;
  std::uint64_t max_unfinished_bytes_per_client = std::uint64_t{2} << 30;  // of its jobs, in memory
  // On average, and for a second at once as many. A coordinator reads some 100,000 messages a
  // second: a client that asks faster would fill the time of all.
  std::uint32_t max_requests_per_second_per_client = 100'000;
  std::uint32_t max_connections_per_client = 1000;  // the longest silent one has to say hello again

  // Outcomes that are not on disk yet. Beyond it nothing more is granted, so a slow or full disk
  // holds up new work and not the memory.
  std::uint32_t max_undurable_outcomes = 100'000;
  std::uint32_t max_expiries_per_tick = 10'000;  // jobs ended by one tick; the next goes on
  // Of one event that ends any number of jobs (one answer for many, a batch that is cancelled), so
  // many are ended at once, the next ones when these are on disk: about 10 ms each time.
  std::uint32_t max_endings_per_event = 2'000;

  std::uint32_t max_attempts = 3;  // promise I7
  // Leases of one job that were lost without having been seen to arrive. The first counts as an
  // attempt, for a job may end its worker before that is heard of; the others, which are announced
  // (docs/PROTOCOL.md), do not, until there are this many.
  std::uint32_t max_unseen_losses = 16;
  // How long a job that failed on one worker waits for another one to have a place for it.
  std::chrono::milliseconds retry_elsewhere{2000};
  std::uint32_t max_retries_per_event = 64;  // looked at; the next turn goes on
  // Measurements of one worker that are made anew by another one when it turns out to have drifted;
  // what it measured beside them is only flagged, and measured anew when a client asks.
  std::uint32_t max_remeasured = 256;
  // A worker that began to drift is not steady again before: each time costs storage a look through
  // what it measured.
  std::chrono::milliseconds min_drift{5000};

  std::chrono::milliseconds heartbeat{1000};  // how often workers are to be heard
  std::uint32_t missed_heartbeats = 3;        // then a worker is lost
  // A lease that the worker does not list this long after it was granted never arrived.
  std::chrono::milliseconds lease_arrival{3000};
  // After a restart with unfinished jobs, nothing is granted for this long: workers say hello again
  // and keep what they are running. They try to connect each 0.1 to 0.3 s
  // (common/wire/transport/dealer.cc), and jobs are to be dispatched again within 1 s.
  std::chrono::milliseconds reattach_grace{750};
  // A thousand workers whose keys are to be looked at take longer than that, on two busy cores up
  // to 10 s. Who comes this soon still goes on with a job that was given to another one since the
  // restart.
  std::chrono::milliseconds late_reattach{20'000};
  std::chrono::seconds no_worker_grace{30};  // then NO_MATCHING_WORKER
  std::chrono::seconds max_fetch_wait{60};
  // An open batch whose client was not heard about it for this long is closed: else the batches of
  // clients that went away would fill the table for ever.
  std::chrono::seconds open_batch_idle{3600};
  std::chrono::minutes lost_worker_shown{10};

  std::uint32_t max_drains = 10'000;  // that stand; beyond: BUSY

  // Refilling a worker: not before it has room for so many short jobs, or so much work, at once.
  std::uint32_t refill_jobs = 8;
  std::chrono::milliseconds refill_work{10};
  std::chrono::milliseconds short_job{50};  // a longer one is granted by itself
  // Nothing is queued and a worker idles: how much work another one must have for some of it to be
  // asked back, and how long that is waited for.
  std::chrono::milliseconds retract_work{20};
  std::chrono::milliseconds retract_patience{1000};

  std::uint32_t retry_after_ms = 250;  // said with BUSY, QUOTA_EXCEEDED and STORAGE_FULL
};

}  // namespace loopfleet::coordinator
