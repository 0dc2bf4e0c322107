#pragma once
// EventLoop: turns messages, finished writes and time into events for the core, and runs the
// effects that come back. Decides nothing. Owned by one thread; only RequestStop() may be called
// from others.

#include <atomic>
#include <chrono>
#include <memory>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/wire/transport/poller.h"
#include "common/wire/transport/router.h"
#include "common/wire/transport/wakeup.h"
#include "coordinator/core/core.h"
#include "coordinator/shell/admission.h"
#include "coordinator/shell/blob_thread.h"
#include "coordinator/shell/effect_runner.h"
#include "coordinator/shell/fleet_snapshot.h"
#include "coordinator/shell/health.h"
#include "coordinator/shell/job_resolver.h"
#include "coordinator/shell/key_watcher.h"
#include "coordinator/shell/log_rate_limit.h"
#include "coordinator/shell/postgres/mirror_process.h"
#include "coordinator/shell/postgres/shared_answers.h"
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
    JobResolver& resolver;
    storage::StoreReader& reader;
    StorageThread& storage;
    BlobThread& blobs;
    wire::Router& clients;
    wire::Router& workers;
    wire::Wakeup& wakeup;  // signalled by the threads of storage and blobs, and by RequestStop
    const Clock& clock;
    monitoring::CoordinatorMetrics& metrics;
    Observer& observer;
    Health& health;
    SnapshotBoard& board;
    std::size_t max_request_bytes = 0;          // of each queue of requests
    std::uint64_t max_undurable_job_bytes = 0;  // beyond, submissions wait
    KeyWatcher* key_watcher = nullptr;          // null: no keys
    const MirrorProcess* mirror = nullptr;      // null: no PostgreSQL is used
    SharedAnswers* shared = nullptr;            // likewise
  };
  explicit EventLoop(const Parts& parts);

  // Continues where the last coordinator on this database stopped. Run() reads the jobs, which
  // `recovery` does not contain, piece by piece between events. Call before Run().
  void Recover(storage::Recovery recovery);
  // Runs until RequestStop(), and then until everything is written, but at most kStopLimit. An
  // error: storage has failed for good.
  Status Run();
  void RequestStop();

 private:
  // Large submissions take long to admit. After this time, or after one message, the other socket
  // and the timers are served.
  static constexpr std::chrono::milliseconds kMaxTimePerTurn{20};
  static constexpr int kMaxMessagesPerTurn = 256;  // of workers, so that clients are not starved
  // Of clients. ZeroMQ takes one message of each connection in turn, and a client may have many
  // connections.
  static constexpr int kMaxRequestsPerTurn = 1'024;
  static constexpr std::chrono::milliseconds kMaxResolvingPerTurn{2};  // or one job
  // While this many jobs are on their way to disk, further submissions wait here, where clients
  // take turns, and not for the disk, which writes in order of arrival.
  static constexpr std::size_t kMaxJobsOnTheirWay = 5'000;
  static constexpr std::chrono::milliseconds kMaxReadingPerTurn{5};  // of pages; or one page
  static constexpr std::size_t kJobsPerPiece = 2'000;                // of a recovery: about 5 ms
  static constexpr std::chrono::milliseconds kTick{50};
  static constexpr std::chrono::seconds kStopLimit{5};  // for writing the rest

  void Give(Event event);    // and the events that follow from it
  void Handle(Event event);  // only this one
  // Reads the next piece of the jobs that the last run left behind. An error: storage cannot be
  // read.
  Status RecoverSomeJobs();
  // Reads the jobs that a worker's hello lists as held, before the core sees the hello.
  void RecoverEarly(const wire::WorkerMessage& message);
  Recovered::Job ResolveRecovered(storage::UnfinishedJob job);
  void GiveStorageEvents();
  void SendBlobAnswers();
  void ReceiveFromClients();
  void Queue(wire::Received request);
  void ServeClients();
  bool MaySubmit() const {
    const State& state = parts_.core.state();
    std::size_t jobs = state.arriving_jobs;
    std::uint64_t bytes = state.commits.undurable_job_bytes();
    if (parts_.shared != nullptr) {
      jobs += parts_.shared->job_count();
      bytes += parts_.shared->bytes();
    }
    return !submissions_.empty() && jobs < kMaxJobsOnTheirWay &&
           bytes < parts_.max_undurable_job_bytes;
  }
  void Serve(RequestQueue& requests, Instant until);  // the next one, or a slice of it
  void ReceiveFromWorkers();
  void ReadPages();
  void ServeHandshakes();
  // Drops the peers whose keys have been revoked. If the sender of `received` is one, marks it as
  // revoked.
  void ApplyKeyChanges(wire::Received& received);
  // Returns the admission of a submission, which has begun; null: the request is dealt with.
  std::unique_ptr<Admission> OnClientFrame(const wire::Received& received);
  void OnWorkerFrame(const wire::Received& received);
  std::unique_ptr<Admission> OnSubmit(const wire::Received& received, std::uint64_t number,
                                      wire::SubmitJobs submit);
  // A submission whose jobs are resolved. `seen`: whether Submission::seen is that of this moment,
  // or an earlier copy of the request may have reached the disk since.
  enum class Seen : std::uint8_t { kNow, kEarlier };
  void OnAdmitted(Admission& admission, Seen seen);
  // Gives the core the submissions that wait no longer.
  void GiveShared();
  void CatchUp(Submission& submission);  // with what happened since it came
  void RefuseWorker(const PeerId& peer, Failure failure);
  void RefuseClient(const PeerId& peer, std::uint64_t number, wire::Refused refused);
  void RefuseRevoked(const PeerId& client);
  void TickIfDue();
  void CountMalformed();
  void CountUnsent(Instant now);

  Parts parts_;
  wire::Poller poller_;
  std::unique_ptr<storage::UnfinishedJobs> to_recover_;  // null: all jobs are read
  // Submissions have their own queue, so questions about accepted jobs do not wait for new jobs.
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
