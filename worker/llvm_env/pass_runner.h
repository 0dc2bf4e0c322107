#pragma once
// PassRunner: runs one canonical pass on a module, in place, as `opt-19 -passes=TEXT` does, with
// analyses of its own: a pass never sees what an earlier one computed. The pass may crash or hang,
// so it runs in a confined child. One thread.

#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace loopfleet::worker {

class PassRunner {
 public:
  struct Problem {
    enum class Kind {
      kUnknownPass,   // LLVM cannot read the text; nothing was run
      kBrokenModule,  // the verifier rejects what the pass left
    };
    Kind kind = Kind::kUnknownPass;
    std::string message;
  };

  PassRunner();
  ~PassRunner();

  // Whether the pass says that it changed the module; it may say so of a module that is equal. What
  // it says that it changed, functions or the module, is verified.
  std::expected<bool, Problem> Run(std::string_view text, llvm::Module& module);

 private:
  struct Changes;
  struct Analyses;

  std::unique_ptr<llvm::TargetMachine> target_;
  std::unique_ptr<Analyses> analyses_;  // registered for the triple of the last module
};

// Marks every defined function minsize and optsize: without this, LLVM's -Os and -Oz do little that
// -O2 does not.
void AddSizeAttributes(llvm::Module& module);

}  // namespace loopfleet::worker
