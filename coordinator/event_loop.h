#pragma once
// EventLoop: sockets, storage and time in, events to the core, effects out. Decides nothing. One
// thread runs it; only RequestStop() may be called from others.

#include <atomic>
#include <chrono>
#include <deque>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/wire/socket.h"
#include "coordinator/admission.h"
#include "coordinator/core.h"
#include "coordinator/effect_runner.h"
#include "coordinator/gatekeeper.h"
#include "coordinator/health.h"
#include "coordinator/storage_thread.h"
#include "monitoring/metrics.h"
#include "storage/record.h"
#include "storage/store_reader.h"

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
    Gatekeeper* gatekeeper = nullptr;  // none: without keys
  };
  explicit EventLoop(const Parts& parts);

  // Goes on where the last coordinator on this database stopped. Before Run().
  void Recover(storage::Recovery recovery);
  // Until RequestStop(), and then until everything is written. An error: storage cannot go on.
  Status Run();
  void RequestStop();

 private:
  static constexpr int kMaxMessagesPerTurn = 256;  // of each socket: neither starves the other
  static constexpr std::chrono::milliseconds kTick{50};
  static constexpr std::chrono::seconds kStopLimit{5};  // for writing the rest

  void Give(Event event);
  void GiveStorageEvents();
  void ReceiveFromClients();
  void ReceiveFromWorkers();
  void ServeHandshakes();
  // Whose keys were revoked by now is gone, the sender of what was just received among them.
  void ApplyKeyChanges(wire::Received& received);
  void OnClientFrame(const wire::Received& received);
  void OnWorkerFrame(const wire::Received& received);
  void OnSubmit(const PeerId& peer, std::uint64_t number, wire::SubmitJobs submit);
  void RefuseWorker(const PeerId& peer, Failure failure);
  void RefuseClient(const PeerId& peer, std::uint64_t number, Failure failure);
  void TickIfDue();
  void CountMalformed();

  Parts parts_;
  wire::Poller poller_;
  Instant next_tick_{};
  std::uint64_t malformed_seen_ = 0;
  std::atomic<bool> stop_requested_{false};
};

}  // namespace loopfleet::coordinator
