#pragma once
// SourceLines: notes in the debug information of a module which node of the tree each instruction
// belongs to, and reads it back from the object file. A place is a line (its node plus 1) and a
// column (its part). Used by one thread.

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "kernel/profile_map.h"
#include "worker/cpu/plan_places.h"

namespace llvm {
class Function;
class IRBuilderBase;
class Module;
}  // namespace llvm

namespace loopfleet::worker {

class SourceLines {
 public:
  // `places` outlives it.
  SourceLines(llvm::Module& module, const PlanPlaces& places);
  ~SourceLines();

  // Instructions of the function may have a place. Call it before any is emitted.
  void AddFunction(llvm::Function& function);
  // Once all is emitted.
  void Finish();

  // What `builder` emits from now on belongs to the place, until the scope ends. `lines` may be
  // null: nothing is noted then.
  class Scope {
   public:
    Scope(SourceLines* lines, llvm::IRBuilderBase& builder, const ProfilePlace& place);
    Scope(SourceLines* lines, llvm::IRBuilderBase& builder, LoopId loop);
    Scope(SourceLines* lines, llvm::IRBuilderBase& builder, const Statement& statement,
          ProfilePart part = ProfilePart::kNode);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    struct Before;
    void Set(const ProfilePlace& place);
    SourceLines* const lines_;
    llvm::IRBuilderBase& builder_;
    std::unique_ptr<Before> before_;
  };

 private:
  struct Info;
  const PlanPlaces& places_;
  std::unique_ptr<Info> info_;
};

// Whether two objects are the same code: what is loaded of them is equal, and so is what the linker
// is to fill in. Neither debug information nor the order of symbols counts. kCorrupt: one of them
// cannot be read.
Result<bool> HaveSameCode(std::string_view a, std::string_view b);

// The spans of the code in an object that was made with SourceLines, in bytes from the kernel's
// entry, ascending. kCorrupt: it has no such information.
Result<std::vector<CodeSpan>> SpansOf(std::string_view object);

}  // namespace loopfleet::worker
