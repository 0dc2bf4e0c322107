#pragma once
// Limits: the bound of every table, queue and wait of the coordinator, in one place. A request that
// exceeds one is refused with a typed failure that says when to retry, never dropped.

#include <chrono>
#include <cstdint>

#include "common/base/clock.h"

namespace loopfleet::coordinator {

struct Limits {
  // Tables. A waiting job takes about 1.4 KB.
  std::uint32_t max_unfinished_jobs = 2'000'000;                // beyond: BUSY
  std::uint64_t max_unfinished_bytes = std::uint64_t{4} << 30;  // memory of these; beyond: BUSY
  std::uint32_t max_unfinished_batches = 100'000;               // beyond: BUSY
  std::uint32_t max_jobs_per_batch = 100'000'000;               // beyond: QUOTA_EXCEEDED
  std::uint32_t max_held_appends = 16;  // appends to a batch that wait for an earlier one: BUSY
  std::uint32_t max_clients = 10'000;   // connections whose hello is remembered
  std::uint32_t max_workers = 10'000;   // with lost ones, while there is room; beyond: BUSY
  std::uint32_t max_workers_per_key = 5'000;  // leaves room for other keys; beyond: BUSY
  // Each kind of worker (class, compiler, policy) adds two lookups for each job that it could run.
  std::uint32_t max_kinds_per_key = 32;         // beyond: QUOTA_EXCEEDED
  std::uint32_t max_hardware_classes = 10'000;  // beyond: each worker keeps its own clock
  std::uint32_t max_affinities = 100'000;       // whose worker is remembered
  // Distinct demands of waiting jobs. Beyond: QUOTA_EXCEEDED for clients with more than their
  // share.
  std::uint32_t max_demands = 1'000;
  std::uint32_t max_waiters = 20'000;            // long polls (FetchOutcomes); beyond: BUSY
  std::uint32_t max_waiters_per_client = 2'000;  // over all its connections; beyond: QUOTA_EXCEEDED

  // Quotas of one client, identified by its key's name, or without keys by the id it states.
  // Beyond: QUOTA_EXCEEDED. They are below the totals above, so one client cannot take all the
  // room.
  std::uint32_t max_unfinished_jobs_per_client = 1'500'000;
  std::uint32_t max_unfinished_batches_per_client = 50'000;
  std::uint64_t max_unfinished_bytes_per_client = std::uint64_t{2} << 30;  // memory of its jobs
  // Average rate, and the burst allowed within one second. A coordinator reads some 100,000
  // messages a second, so a client that asks faster would take all its time.
  std::uint32_t max_requests_per_second_per_client = 100'000;
  std::uint32_t max_connections_per_client = 1000;  // beyond: the longest silent says hello again

  // Outcomes that are not on disk yet, and their memory. Beyond this nothing more is granted, so a
  // slow or full disk delays new work and does not fill the memory.
  std::uint32_t max_undurable_outcomes = 100'000;
  std::uint64_t max_undurable_outcome_bytes = std::uint64_t{256} << 20;
  // Overdue jobs ended before each event, and unschedulable ones by one tick; the next continues.
  std::uint32_t max_expiries_per_tick = 2'000;
  // Jobs ended at once by an event that ends any number of jobs (one answer for many, a cancelled
  // batch). The next ones follow when these are on disk: about 10 ms each time.
  std::uint32_t max_endings_per_event = 2'000;

  std::uint32_t max_attempts = 3;  // promise I7
  // Leases of one job that were lost before they were seen to arrive. The first counts as an
  // attempt, because a job may kill its worker before the worker reports it. The others, which are
  // announced (docs/PROTOCOL.md), do not count until there are this many.
  std::uint32_t max_unseen_losses = 16;
  // How long a job that failed on one worker waits for a free place on another.
  std::chrono::milliseconds retry_elsewhere{2000};
  std::uint32_t max_retries_per_event = 64;  // examined by one event; the next event continues
  // Measurements of a drifted worker that are remeasured on another worker. Its further
  // measurements are only flagged, and remeasured when a client asks.
  std::uint32_t max_remeasured = 256;
  // Memory of these jobs, for each worker: they have ended, so no client is charged for them.
  std::uint64_t max_remeasured_bytes = 1 << 20;
  // The shortest time between the start of a drift and its end: each change makes storage scan the
  // latest measurements. Also between suspicions of new workers with one key.
  std::chrono::milliseconds min_drift{5000};

  std::chrono::milliseconds heartbeat{1000};  // interval at which workers report
  std::uint32_t missed_heartbeats = 3;        // then a worker is lost
  // A lease that the worker does not list this long after it was granted never arrived.
  std::chrono::milliseconds lease_arrival{3000};
  // After a restart with unfinished jobs, nothing is granted for this long: workers say hello again
  // and keep what they are running. They retry the connection every 0.1 to 0.3 s
  // (common/wire/transport/dealer.cc), and dispatch should resume within 1 s.
  std::chrono::milliseconds reattach_grace{750};
  // With a thousand workers whose keys must be checked, reconnecting takes longer than that: up to
  // 10 s on two busy cores. A worker that returns within this time keeps its jobs, even one that
  // was granted to another worker since the restart. One that returns later does not.
  std::chrono::milliseconds late_reattach{20'000};
  std::chrono::seconds no_worker_grace{30};  // then NO_MATCHING_WORKER
  std::chrono::seconds max_fetch_wait{60};
  // An open batch whose client has not mentioned it for this long is closed. Otherwise the batches
  // of departed clients would fill the table.
  std::chrono::seconds open_batch_idle{3600};
  std::chrono::minutes lost_worker_shown{10};

  std::uint32_t max_drains = 10'000;  // standing drains; beyond: BUSY

  // A worker is refilled once it has room for this many short jobs, or for this much work.
  std::uint32_t refill_jobs = 8;
  std::chrono::milliseconds refill_work{10};
  std::chrono::milliseconds short_job{50};  // a longer job is granted by itself
  // While the queue is empty and a worker idles: how much work another worker must hold for some of
  // it to be retracted, and how long to wait for that.
  std::chrono::milliseconds retract_work{20};
  std::chrono::milliseconds retract_patience{1000};

  std::uint32_t retry_after_ms = 250;  // sent with BUSY, QUOTA_EXCEEDED and STORAGE_FULL
};

}  // namespace loopfleet::coordinator
