#include "worker/cpu/probe_emitter.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

namespace loopfleet::worker {

void ProbeEmitter::Around(std::size_t site, const std::function<void()>& emit) {
  if (!counts_[site]) return emit();
  ReadClock(site, Edge::kEntry);
  emit();
  ReadClock(site, Edge::kExit);
}

// The time at the entry is taken off the cell and the time at the exit is added, so that nothing
// has to stay in a register between them.
void ProbeEmitter::ReadClock(std::size_t site, Edge edge) {
  llvm::IRBuilder<> probe(builder_.GetInsertBlock(), builder_.GetInsertPoint());
  llvm::Type* number = probe.getInt64Ty();
  const auto cell = [&](std::size_t index) {
    return probe.CreateGEP(number, cells_, probe.getInt64(2 * site + index));
  };
  const auto change = [&](llvm::Value* address, llvm::Value* by, bool adds) {
    llvm::Value* before = probe.CreateLoad(number, address);
    probe.CreateStore(adds ? probe.CreateAdd(before, by) : probe.CreateSub(before, by), address);
  };
  llvm::Value* ticks = probe.CreateIntrinsic(number, llvm::Intrinsic::readcyclecounter, {});
  change(cell(0), ticks, edge == Edge::kExit);
  if (edge == Edge::kExit) change(cell(1), probe.getInt64(1), true);
}

}  // namespace loopfleet::worker
