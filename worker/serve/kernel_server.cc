#include "worker/serve/kernel_server.h"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "worker/backend/code_hash.h"

namespace loopfleet::worker {
namespace {

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
  LF_TRY(Judged judged, Verify(*tree, request.compile.threads));
  if (judged.verified == Verified::kRight) parts_.known.Add(served.code_hash, key);
  served.verified = judged.verified;
  served.remark = std::move(judged.remark);
  return served;
}

std::expected<KernelServer::Judged, Failure> KernelServer::Verify(const looptree::LoopTree& tree,
                                                                  std::uint32_t threads) {
  CodeArena::Place place = parts_.code.Take();
  LF_TRY(const CompiledKernel compiled,
         parts_.children.compiler.Compile(tree, place, {.threads = threads}));
  const Result<std::uint64_t> entry = place.Write(compiled.code);
  if (!entry) {
    return std::unexpected(
        Failure{.code = FailureCode::kCompileError, .message = entry.error().message});
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
  std::vector<std::uint64_t> counts;
  for (const BufferSpec& buffer : compiled.kernel.buffers) {
    if (buffer.role != BufferSpec::Role::kInput) counts.push_back(buffer.element_count);
  }
  auto arena = buffers_.Take(LayOut(counts, (*workload)->layout.buffers.size()));
  if (!arena) {
    return std::unexpected(Failure{.code = FailureCode::kRunOom, .message = arena.error().message});
  }
  const KernelCall call{.entry = *entry, .workload = *workload, .arena = *std::move(arena)};
  const bool is_judged = judged.verified == Verified::kRight;
  LF_TRY_VOID(RunAndCheck(
      call, is_judged ? std::span((*workload)->expected) : std::span<const ExpectedTensor>()));
  return judged;
}

std::expected<void, Failure> KernelServer::RunAndCheck(const KernelCall& call,
                                                       std::span<const ExpectedTensor> expected) {
  for (;;) {  // twice at most: a kernel before it may have damaged the child
    call.arena->Poison();
    const std::expected<Nanos, Failure> took = parts_.children.verifier.Run(call);
    std::expected<void, Failure> right;
    if (took) {
      right = call.arena->Check(expected);
    } else {
      right = std::unexpected(took.error());
    }
    if (right || parts_.children.verifier.ran_in_new_child()) return right;
    parts_.children.verifier.Renew();
  }
}

}  // namespace loopfleet::worker
