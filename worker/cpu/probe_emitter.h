#pragma once
// ProbeEmitter: emits the reads of the clock of an instrumented copy. Used by one thread.

#include <cstddef>
#include <functional>
#include <vector>

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace loopfleet::worker {

class ProbeEmitter {
 public:
  // `cells`: the address of the first cell (ProbeCells). `counts`: by site, whether it counts.
  // `builder` emits the kernel; probes go where it stands, and are not counted as its instructions.
  ProbeEmitter(llvm::IRBuilderBase& builder, llvm::Value* cells, std::vector<bool> counts)
      : builder_(builder), cells_(cells), counts_(std::move(counts)) {}

  // Emits what `emit` does, with the clock read before and after it if the site counts.
  void Around(std::size_t site, const std::function<void()>& emit);

 private:
  enum class Edge { kEntry, kExit };
  void ReadClock(std::size_t site, Edge edge);

  llvm::IRBuilderBase& builder_;
  llvm::Value* const cells_;
  const std::vector<bool> counts_;
};

}  // namespace loopfleet::worker
