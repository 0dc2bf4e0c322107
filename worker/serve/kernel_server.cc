#include "worker/serve/kernel_server.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "worker/backend/code_hash.h"
#include "worker/verification/mapped_buffers.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kMostLoaded = 32;  // kernels that wait for further runs

// Inputs for a kernel whose outputs nothing can judge.
std::expected<std::vector<bool>, Failure> FillInputs(const looptree::LoopTree& tree, InputSeed,
                                                     const SharedMemory& inputs,
                                                     const SharedMemory&) {
  constexpr std::size_t kDifferent = 7;
  const std::span<std::byte> bytes = inputs.bytes();
  for (std::size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    const float value = 0.5F + 0.125F * static_cast<float>(i / sizeof(float) % kDifferent);
    std::memcpy(bytes.data() + i, &value, sizeof value);
  }
  return std::vector<bool>(tree.program().outputs.size(), true);
}

bool IsBeyondTheReference(const Failure& failure) {
  return failure.code == FailureCode::kUnsupported || failure.code == FailureCode::kUnstableTiming;
}

}  // namespace

KernelServer::KernelServer(const Parts& parts) : parts_(parts), workloads_({.seeds = 1}) {}

ServeReply KernelServer::Answer(const ServeRequest& request) {
  const looptree::Checked<looptree::LoopTree> tree = looptree::ParseIr(request.compile.ir);
  if (!tree) return std::unexpected(ToFailure(tree.error()));
  LF_TRY(CompiledKernel compiled, parts_.children.compiler.CompileFor(*tree, request.compile));
  Served served{.code_hash = CodeHash(compiled.kernel.object)};
  compiled.kernel.object.clear();
  served.compiled = std::move(compiled);
  if (request.verify == VerifyWish::kNever) return served;
  const std::string key = looptree::KeyOf(*tree).ToString();
  if (parts_.known.Has(served.code_hash, key)) {
    served.verified = Verified::kBefore;
    return served;
  }
  LF_TRY(Judged judged, Verify(*tree, request.compile.threads, served.code_hash));
  if (judged.verified == Verified::kRight) parts_.known.Add(served.code_hash, key);
  served.verified = judged.verified;
  served.remark = std::move(judged.remark);
  return served;
}

std::expected<KernelServer::Judged, Failure> KernelServer::Verify(const looptree::LoopTree& tree,
                                                                  std::uint32_t threads,
                                                                  const std::string& code_hash) {
  LF_TRY(const Loaded loaded, Load(tree, threads));
  if (loaded.code_hash != code_hash) {
    return std::unexpected(Failure{.code = FailureCode::kCompileError,
                                   .message = "two compilations gave different machine code"});
  }
  Judged judged;
  auto workload = workloads_.Get(
      tree, [&](const auto& of, InputSeed seed, const auto& inputs, const auto& reference) {
        return parts_.children.reference.Compute(of, seed, inputs, reference);
      });
  if (!workload && IsBeyondTheReference(workload.error())) {
    judged = {.verified = Verified::kUnjudged, .remark = workload.error().message};
    workload = MakeWorkload(tree, {}, FillInputs);
  }
  if (!workload) return std::unexpected(workload.error());
  LF_TRY(auto arena, BuffersFor(loaded.kernel, **workload));
  const KernelCall call{.entry = loaded.entry, .workload = *workload, .arena = std::move(arena)};
  const bool is_judged = judged.verified == Verified::kRight;
  LF_TRY_VOID(RunAndCheck(
      call, is_judged ? std::span((*workload)->expected) : std::span<const ExpectedTensor>()));
  return judged;
}

std::expected<void, Failure> KernelServer::RunAndCheck(const KernelCall& call,
                                                       std::span<const ExpectedTensor> expected) {
  for (;;) {  // twice at most: a kernel before it may have damaged the child
    call.arena->Poison();
    const std::expected<ExecutorProcess::Ran, Failure> ran = parts_.children.verifier.Run(call);
    std::expected<void, Failure> right;
    if (ran) {
      right = call.arena->Check(expected);
    } else {
      right = std::unexpected(ran.error());
    }
    if (right || parts_.children.verifier.ran_in_new_child()) return right;
    parts_.children.verifier.Renew();
  }
}

std::expected<KernelServer::Loaded, Failure> KernelServer::Load(const looptree::LoopTree& tree,
                                                                std::uint32_t threads) {
  CodeArena::Place place = parts_.code.Take();
  LF_TRY(CompiledKernel compiled,
         parts_.children.compiler.Compile(tree, place, {.threads = threads}));
  const Result<std::uint64_t> entry = place.Write(compiled.code);
  if (!entry) {
    return std::unexpected(
        Failure{.code = FailureCode::kCompileError, .message = entry.error().message});
  }
  std::string code_hash = CodeHash(compiled.kernel.object);
  compiled.kernel.object.clear();
  return Loaded{.tree = tree,
                .code_hash = std::move(code_hash),
                .place = std::move(place),
                .kernel = std::move(compiled.kernel),
                .entry = *entry};
}

std::expected<std::shared_ptr<GuardedBuffers>, Failure> KernelServer::BuffersFor(
    const Kernel& kernel, const Workload& workload) {
  std::vector<std::uint64_t> counts;
  for (const BufferSpec& buffer : kernel.buffers) {
    if (buffer.role != BufferSpec::Role::kInput) counts.push_back(buffer.element_count);
  }
  auto arena = buffers_.Take(LayOut(counts, workload.layout.buffers.size()));
  if (arena) return *std::move(arena);
  return std::unexpected(Failure{.code = FailureCode::kRunOom, .message = arena.error().message});
}

std::expected<KernelServer::Loaded*, Failure> KernelServer::FindLoaded(
    const IsolatedRunRequest& request) {
  const std::string key = std::to_string(request.threads) + ' ' + request.ir;
  const auto known = std::ranges::find(loaded_, key, &std::pair<std::string, Loaded>::first);
  if (known != loaded_.end()) {
    loaded_.splice(loaded_.begin(), loaded_, known);
    return &loaded_.front().second;
  }
  const looptree::Checked<looptree::LoopTree> tree = looptree::ParseIr(request.ir);
  if (!tree) return std::unexpected(ToFailure(tree.error()));
  while (loaded_.size() >= kMostLoaded) loaded_.pop_back();
  LF_TRY(Loaded loaded, Load(*tree, request.threads));
  loaded_.emplace_front(key, std::move(loaded));
  return &loaded_.front().second;
}

IsolatedRunReply KernelServer::Answer(const IsolatedRunRequest& request, int memory) {
  LF_TRY(const Loaded* const loaded, FindLoaded(request));
  const IsolatedRun done{.scratch_bytes = loaded->kernel.scratch_bytes};
  if (request.memory_size == 0) return done;
  const looptree::Program& program = loaded->tree.program();
  const std::vector<std::size_t> offsets = LayOutTensors(program);
  const PlacedBuffer whole{.offset = 0, .size = request.memory_size};
  auto mapped = MappedBuffers::Map(memory, request.memory_size, {&whole, 1},
                                   MappedBuffers::Access::kReadWrite);
  if (!mapped || offsets.back() > request.memory_size) {
    return std::unexpected(Failure{.code = FailureCode::kMalformed,
                                   .message = "the memory of a run cannot be mapped"});
  }
  const std::span<std::byte> tensors = mapped->buffers()[0];
  const auto fill = [&](const auto&, InputSeed, const SharedMemory& inputs,
                        const SharedMemory&) -> std::expected<std::vector<bool>, Failure> {
    std::vector<std::uint64_t> counts;
    for (const looptree::NodeId input : program.inputs) {
      counts.push_back(static_cast<std::uint64_t>(program.ElementCount(input)));
    }
    const BufferLayout layout = LayOut(counts, 0);
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      std::memcpy(inputs.bytes().data() + layout.buffers[i].offset, tensors.data() + offsets[i],
                  layout.buffers[i].size);
    }
    return std::vector<bool>(program.outputs.size(), true);
  };
  LF_TRY(const auto workload, MakeWorkload(loaded->tree, {}, fill));
  LF_TRY(const auto arena, BuffersFor(loaded->kernel, *workload));
  LF_TRY_VOID(RunAndCheck({.entry = loaded->entry, .workload = workload, .arena = arena}, {}));
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const PlacedBuffer& output = arena->layout().buffers[i];
    std::memcpy(tensors.data() + offsets[program.inputs.size() + i],
                arena->memory().bytes().data() + output.offset, output.size);
  }
  return done;
}

}  // namespace loopfleet::worker
