#include "worker/workload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/random.h"
#include "common/looptree/interpret.h"

namespace loopfleet::worker {
namespace {

using looptree::Op;

bool NeedsPositiveInputs(const looptree::Program& program) {
  return std::any_of(program.nodes.begin(), program.nodes.end(), [](const looptree::Node& node) {
    return node.op == Op::kDivide || node.op == Op::kLog || node.op == Op::kSqrt ||
           node.op == Op::kReciprocal;
  });
}

looptree::Tensor MakeInput(std::size_t size, bool positive, SplitMix64& random) {
  constexpr std::uint64_t kLargest = 4;
  looptree::Tensor tensor(size);
  for (float& value : tensor) {
    const std::uint64_t drawn = random.Below(2 * kLargest);
    const auto magnitude = static_cast<float>(drawn % kLargest + 1);
    value = positive || drawn < kLargest ? magnitude : -magnitude;  // never 0: it would hide terms
  }
  return tensor;
}

}  // namespace

Result<std::shared_ptr<const Workload>> MakeWorkload(const looptree::Program& program,
                                                     std::uint64_t seed) {
  auto workload = std::make_shared<Workload>();
  workload->program = program;
  workload->seed = seed;
  std::vector<std::uint64_t> counts;
  for (const looptree::NodeId input : program.inputs) {
    counts.push_back(static_cast<std::uint64_t>(program.ElementCount(input)));
  }
  workload->layout = LayOut(counts, 0);
  LF_TRY(workload->inputs, SharedMemory::Create(workload->layout.size));
  SplitMix64 random(seed);
  const bool positive = NeedsPositiveInputs(program);
  std::vector<looptree::Tensor> inputs;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    inputs.push_back(MakeInput(counts[i], positive, random));
    std::memcpy(workload->inputs.bytes().data() + workload->layout.buffers[i].offset,
                inputs.back().data(), inputs.back().size() * sizeof(float));
  }
  LF_TRY_VOID(workload->inputs.SealAgainstOthers());
  looptree::Reference reference = looptree::Evaluate(program, inputs);
  workload->bytes = workload->layout.size;
  for (std::size_t i = 0; i < reference.outputs.size(); ++i) {
    std::vector<double> tolerance;
    if (i < reference.tolerance.size()) tolerance = std::move(reference.tolerance[i]);
    workload->expected.emplace_back(std::move(reference.outputs[i]), std::move(tolerance));
    workload->bytes += workload->expected.back().bytes();
  }
  return workload;
}

WorkloadCache::WorkloadCache(const Options& options) : options_(options) {
  for (std::uint32_t i = 0; i < options.seeds; ++i) seeds_.push_back(OsRandom64());
}

Result<std::shared_ptr<const Workload>> WorkloadCache::Get(const looptree::Program& program) {
  std::lock_guard lock(mutex_);
  const std::uint64_t seed = seeds_[turn_++ % seeds_.size()];
  const auto found = std::find_if(
      newest_first_.begin(), newest_first_.end(),
      [&](const auto& have) { return have->seed == seed && have->program == program; });
  if (found != newest_first_.end()) {
    newest_first_.splice(newest_first_.begin(), newest_first_, found);
    return newest_first_.front();
  }
  LF_TRY(std::shared_ptr<const Workload> workload, MakeWorkload(program, seed));
  newest_first_.push_front(workload);
  bytes_ += workload->bytes;
  while (bytes_ > options_.max_bytes && newest_first_.size() > 1) {
    bytes_ -= newest_first_.back()->bytes;
    newest_first_.pop_back();
  }
  return workload;
}

}  // namespace loopfleet::worker
