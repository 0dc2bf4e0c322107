// loopfleet-worker with a compiler that fails on purpose for programs with a dimension of certain
// sizes, and compiles all others correctly. Built with the tests only. The environment variable
// FAULTY_TIER sets the tier it claims: with "general" its results mix with those of honest workers.
// Its instruction counts after LLVM passes are one too high.

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/daemon.h"
#include "worker/llvm_env/pass_jobs.h"
#include "worker/worker_options.h"

namespace loopfleet::worker {
namespace {

constexpr std::int64_t kWrongOutput = 67;
constexpr std::int64_t kCrash = 71;
constexpr std::int64_t kHang = 73;
constexpr std::int64_t kCompilerCrash = 79;
constexpr std::int64_t kCompilerHang = 83;
constexpr std::int64_t kIllegalInstruction = 89;
// Right but slow: a different schedule from the requested one, vectorized along its outermost loop.
constexpr std::int64_t kOtherSchedule = 61;

// The objects that replace the right ones, by the size of a dimension.
using Objects = std::map<std::int64_t, std::string>;

std::string ReadObject(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  LF_CHECK(!bytes.empty(), "{} cannot be read", path);
  return bytes;
}

class FaultyCompiler final : public Compiler {
 public:
  FaultyCompiler(std::unique_ptr<Compiler> compiler, Objects objects)
      : compiler_(std::move(compiler)), objects_(std::move(objects)) {}

  std::expected<Kernel, Failure> Compile(const looptree::LoopTree& tree,
                                         const CompileOptions& options) override {
    if (HasDim(tree, kCompilerCrash) || HasDim(tree, HOSTILE_COMPILE_CRASH)) std::abort();
    if (HasDim(tree, kCompilerHang) || HasDim(tree, HOSTILE_COMPILE_HANG)) {
      for (;;) ::sched_yield();
    }
    if (HasDim(tree, HOSTILE_COMPILE_BOMB)) {
      for (;;) *static_cast<volatile char*>(std::malloc(std::size_t{16} << 20)) = 1;
    }
    if (HasDim(tree, kOtherSchedule)) return compiler_->Compile(BadlyVectorized(tree), options);
    std::expected<Kernel, Failure> kernel = compiler_->Compile(tree, options);
    if (!kernel) return kernel;
    for (const auto& [size, object] : objects_) {
      if (HasDim(tree, size)) kernel->object = object;
    }
    return kernel;
  }

 private:
  static looptree::LoopTree BadlyVectorized(const looptree::LoopTree& tree) {
    looptree::Schedule schedule = tree.schedule();
    for (looptree::NodeSchedule& node : schedule) {
      if (!node.loops.empty()) node.loops.front().annotation = looptree::Annotation::kVectorize;
    }
    auto built = tree.WithSchedule(std::move(schedule));
    LF_CHECK(built.has_value(), "{}", built.error().message);
    return *std::move(built);
  }
  static bool HasDim(const looptree::LoopTree& tree, std::int64_t size) {
    const auto& dims = tree.program().dims;
    return std::any_of(dims.begin(), dims.end(),
                       [size](const looptree::Dim& dim) { return dim.size == size; });
  }

  std::unique_ptr<Compiler> compiler_;
  Objects objects_;
};

Backend FaultyBackend() {
  Objects objects = {{kWrongOutput, ReadObject(FAULTY_WRONG_OUTPUT)},
                     {kCrash, ReadObject(FAULTY_CRASH)},
                     {kHang, ReadObject(FAULTY_HANG)},
                     {kIllegalInstruction, ReadObject(FAULTY_ILLEGAL_INSTRUCTION)}};
  std::ifstream hostile(HOSTILE_OBJECTS);
  std::string path;
  for (std::int64_t size = 0; hostile >> size >> path;) objects[size] = ReadObject(path.c_str());
  LF_CHECK(objects.size() > 4, "{} cannot be read", HOSTILE_OBJECTS);
  Backend backend = CpuBackend();
  const char* const tier = std::getenv("FAULTY_TIER");
  backend.compiler.tier = tier != nullptr ? tier : "faulty";  // its figures answer no other jobs
  backend.make_compiler = [make = backend.make_compiler, objects] {
    return std::make_unique<FaultyCompiler>(make(), objects);
  };
  return backend;
}

class MiscountingRunner final : public LeaseRunner {
 public:
  explicit MiscountingRunner(std::unique_ptr<LeaseRunner> runner) : runner_(std::move(runner)) {}

  bool Accept(wire::Lease lease) override { return runner_->Accept(std::move(lease)); }
  void Drop(std::span<const LeaseId> leases) override { runner_->Drop(leases); }
  std::vector<LeaseId> DropUnstarted() override { return runner_->DropUnstarted(); }
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override {
    return runner_->GiveBack(leases);
  }
  std::vector<wire::Report> TakeFinished() override {
    auto reports = runner_->TakeFinished();
    for (wire::Report& report : reports) {
      auto* observed = std::get_if<Observed>(&report.evaluation.verdict);
      if (observed == nullptr) continue;
      const auto count = observed->values.find("IrInstructionCount");
      if (count != observed->values.end()) std::get<double>(count->second) += 1;
    }
    return reports;
  }
  std::vector<wire::HeldLease> Held() const override { return runner_->Held(); }
  std::vector<BlobQuestion> TakeBlobQuestions() override { return runner_->TakeBlobQuestions(); }
  void AnswerBlob(const BlobAnswer& answer) override { runner_->AnswerBlob(answer); }

 private:
  std::unique_ptr<LeaseRunner> runner_;
};

JobKind MiscountingPasses() {
  JobKind kind = PassJobKind();
  kind.make_runner = [make = kind.make_runner](JobKind::Parts parts) {
    return std::make_unique<MiscountingRunner>(make(std::move(parts)));
  };
  return kind;
}

}  // namespace
}  // namespace loopfleet::worker

int main(int argc, char** argv) {
  using namespace loopfleet::worker;
  auto config = ParseWorkerOptions(argc, argv);
  if (!config) {
    fmt::print(stderr, "{}", config.error().text);
    return config.error().exit_code;
  }
  // Other load on the host must not put this worker into quarantine.
  config->canary_interval = std::chrono::hours(24);
  return RunWorker(*config, FaultyBackend(), {MiscountingPasses()});
}
