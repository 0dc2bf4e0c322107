#pragma once
// EffectRunner: executes the core's effects. Decides nothing: it encodes messages, cuts them to
// frames, reads from storage, sends, and reports the peers that could not be reached. Belongs to
// the event loop's thread.

#include <set>
#include <utility>
#include <vector>

#include "common/wire/transport/router.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/shell/blob_thread.h"
#include "coordinator/shell/observer.h"
#include "coordinator/shell/read_queue.h"
#include "coordinator/shell/storage_queries.h"
#include "coordinator/shell/storage_thread.h"

namespace loopfleet::coordinator {

class EffectRunner {
 public:
  EffectRunner(wire::Router& clients, wire::Router& workers, StorageThread& storage,
               BlobThread& blobs, StorageQueries& answers, Observer& observer)
      : clients_(clients),
        workers_(workers),
        storage_(storage),
        blobs_(blobs),
        answers_(answers),
        observer_(observer) {}

  void Run(Effects effects);
  // Pages of outcomes are read later, one per call of ReadNext.
  bool HasReads() const { return !reads_.empty(); }
  void ReadNext();
  void ForgetReadsOf(const std::set<KeyText>& keys) { reads_.RemoveByKeys(keys); }
  // Events for the core: peers that could not be reached.
  std::vector<Event> TakeEvents() { return std::exchange(events_, {}); }

 private:
  void Do(ReplyToClient effect);
  void Do(SendOutcomes effect);
  void Do(AnswerFromStorage effect);
  void Do(SendJob effect);
  void Do(SendFleet effect);
  void Do(SendToWorker effect);
  void Do(const AnswerCodeLookup& effect);
  void Do(KeepBlob effect);
  void Do(SendBlob effect);
  void RefuseBlob(const BlobPeer& from);
  void Do(Persist effect);
  void Do(const Observation& observation);

  void AddRead(ReadQueue::Read read);
  void Answer(const AnswerFromStorage& effect);
  void Reply(const PeerId& peer, std::uint64_t number, wire::CoordinatorMessage message);
  void SendLeases(const PeerId& peer, wire::Leases leases);
  bool Send(const PeerId& peer, const wire::WorkerCommand& command);

  wire::Router& clients_;
  wire::Router& workers_;
  StorageThread& storage_;
  BlobThread& blobs_;
  StorageQueries& answers_;
  Observer& observer_;
  ReadQueue reads_;
  std::vector<Event> events_;
};

}  // namespace loopfleet::coordinator
