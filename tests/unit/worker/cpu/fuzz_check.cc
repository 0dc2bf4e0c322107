#include "tests/unit/worker/cpu/fuzz_check.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/job/loop_schedule.h"
#include "common/looptree/text/text.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/portable_c/c_library.h"
#include "worker/portable_c/c_source.h"

namespace loopfleet::worker {
namespace {

constexpr std::pair<const char*, CpuIsa> kIsas[] = {{"host", CpuIsa::kHost},
                                                    {"avx512", CpuIsa::kAvx512},
                                                    {"avx2", CpuIsa::kAvx2},
                                                    {"baseline", CpuIsa::kBaseline}};

CpuIsa IsaNamed(const std::string& wanted) {
  for (const auto& [name, isa] : kIsas) {
    if (wanted == name) return isa;
  }
  LF_CHECK(false, "there is no instruction set '{}'", wanted);
}

}  // namespace

std::vector<std::string> FuzzCheck::IsasOfHost() {
  std::vector<std::string> names;
  for (const auto& [name, isa] : kIsas) {
    if (HostRuns(isa)) names.emplace_back(name);
  }
  return names;
}

std::string FuzzCheck::CheckInC(const looptree::LoopTree& tree,
                                const CachedReference::Known& known) {
  const auto plan = PlanKernel(tree);
  if (!plan) return plan.error().message;
  const CFile file{.function = "kernel",
                   .text = CSourceOf(tree, {.function = "kernel"}).value().text};
  const auto library = CLibrary::Compile({file});
  if (!library) return library.error().message;
  std::string problems;
  const auto outputs =
      RunGuarded(library->Find("kernel"), BufferSpecsOf(*plan), known.inputs, problems);
  problems += Difference(outputs, known.reference);
  return problems + Difference(outputs, looptree::Interpret(tree, known.inputs), known.reference);
}

std::string FuzzCheck::Check(const FuzzCase& fuzz) {
  const auto replayed = ReplayJob(fuzz.job);
  if (!replayed) return replayed.error().message;
  const looptree::LoopTree& tree = replayed->tree;
  const CachedReference::Known& known = references_.Of(tree.program(), fuzz.input_seed);
  if (fuzz.isa == "c") return CheckInC(tree, known);
  KernelRunner& runner = runners_.For(IsaNamed(fuzz.isa));
  const auto kernel = runner.TryCompile(tree, {.threads = fuzz.threads});
  if (!kernel) return kernel.error().message;
  std::string problems;
  const auto outputs = runner.Run(*kernel, known.inputs, problems);
  problems += Difference(outputs, known.reference);
  problems += Difference(outputs, looptree::Interpret(tree, known.inputs), known.reference);
  return problems.empty() ? "" : problems + "\n" + TreeText(tree, {});
}

}  // namespace loopfleet::worker
