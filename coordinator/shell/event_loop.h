#pragma once
// EventLoop: sockets, storage and time in, events to the core, effects out. Decides nothing. One
// thread runs it; only RequestStop() may be called from others.

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/wire/transport/poller.h"
#include "common/wire/transport/router.h"
#include "common/wire/transport/wakeup.h"
#include "coordinator/core/core.h"
#include "coordinator/shell/effect_runner.h"
#include "coordinator/shell/fleet_snapshot.h"
#include "coordinator/shell/health.h"
#include "coordinator/shell/job_resolver.h"
#include "coordinator/shell/key_watcher.h"
#include "coordinator/shell/log_rate_limit.h"
#include "coordinator/shell/request_queue.h"
#include "coordinator/shell/storage_thread.h"
#include "monitoring/metrics.h"
#include "storage/record.h"
#include "storage/store_reader.h"
#include "storage/unfinished_jobs.h"

namespace loopfleet::coordinator {

class EventLoop {
 public:
  struct Parts {
    Core& core;
    EffectRunner& runner;
    Admitter& admitter;
    storage::StoreReader& reader;
    StorageThread& storage;
    wire::Router& clients;
    wire::Router& workers;
    wire::Wakeup& wakeup;  // signalled by the storage thread, and by RequestStop
    const Clock& clock;
    monitoring::CoordinatorMetrics& metrics;
    Observer& observer;
    Health& health;
    SnapshotBoard& board;
    KeyWatcher* key_watcher = nullptr;  // none: without keys
  };
  explicit EventLoop(const Parts& parts);

  // Goes on where the last coordinator on this database stopped; `recovery` is without the jobs,
  // which Run() reads piece by piece between events. Before Run().
  void Recover(storage::Recovery recovery);
  // Until RequestStop(), and then until everything is written. An error: storage cannot go on.
  Status Run();
  void RequestStop();

 private:
  // Large submissions take long to admit: the other socket and the timers have their turn after
  // this, or after one message.
  static constexpr std::chrono::milliseconds kMaxTimePerTurn{20};
  static constexpr int kMaxMessagesPerTurn = 256;  // of workers: clients are not starved
  // Of clients. ZeroMQ gives one of each connection in turn, and a client may have many.
  static constexpr int kMaxRequestsPerTurn = 1'024;
  static constexpr std::chrono::milliseconds kMaxAdmittingPerTurn{5};  // or one submission
  // While so many jobs are on their way to disk, further submissions wait for their turns, where
  // they are taken by clients, and not for the disk, which takes them as they came.
  static constexpr std::size_t kMaxJobsOnTheirWay = 5'000;
  static constexpr std::chrono::milliseconds kMaxReadingPerTurn{5};  // of pages, or one
  static constexpr std::size_t kJobsPerPiece = 2'000;                // of a recovery; about 5 ms
  static constexpr std::chrono::milliseconds kTick{50};
  static constexpr std::chrono::seconds kStopLimit{5};  // for writing the rest

  void Give(Event event);
  // Reads on in what the last run left behind. An error: it cannot be read.
  Status RecoverSomeJobs();
  // What a worker has something to say about has to be here before it says so.
  void RecoverEarly(const wire::WorkerMessage& message);
  Recovered::Job AdmitRecovered(storage::UnfinishedJob job);
  void GiveStorageEvents();
  void ReceiveFromClients();
  void Queue(wire::Received request);
  void ServeClients();
  bool MaySubmit() const {
    return !submissions_.empty() && parts_.core.state().arriving_jobs < kMaxJobsOnTheirWay;
  }
  void Serve(RequestQueue& requests);  // the next one
  void ReceiveFromWorkers();
  void ReadPages();
  void ServeHandshakes();
  // Whose keys were revoked by now is gone, the sender of `received` among them.
  void ApplyKeyChanges(wire::Received& received);
  void OnClientFrame(const wire::Received& received);
  void OnWorkerFrame(const wire::Received& received);
  void OnSubmit(const wire::Received& received, std::uint64_t number, wire::SubmitJobs submit);
  void RefuseWorker(const PeerId& peer, Failure failure);
  void RefuseClient(const PeerId& peer, std::uint64_t number, wire::Refused refused);
  void TickIfDue();
  void CountMalformed();
  void CountUnsent(Instant now);

  Parts parts_;
  wire::Poller poller_;
  std::unique_ptr<storage::UnfinishedJobs> to_recover_;  // none: all are here
  // In turns of their own: what is asked about jobs that are here does not wait for new ones.
  RequestQueue submissions_;
  RequestQueue requests_;  // all others
  Instant next_tick_{};
  std::uint64_t malformed_seen_ = 0;
  LogRateLimit malformed_log_;
  std::uint64_t unsent_seen_ = 0;
  LogRateLimit unsent_log_;
  std::atomic<bool> stop_requested_{false};
};

}  // namespace loopfleet::coordinator
