#pragma once
// What several handlers tell workers, and observers about them.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

inline void Send(Transaction& tx, const PeerId& peer, wire::WorkerCommand command) {
  tx.effects.push_back(SendToWorker{.peer = peer, .command = std::move(command)});
}

inline void Observe(Transaction& tx, WorkerChange change, const Worker& worker,
                    std::size_t leases) {
  tx.effects.push_back(Observation{WorkerChanged{
      .change = change, .name = worker.facts.name, .leases = static_cast<std::uint32_t>(leases)}});
}

}  // namespace loopfleet::coordinator
