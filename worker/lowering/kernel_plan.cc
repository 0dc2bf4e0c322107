#include "worker/lowering/kernel_plan.h"

#include <limits>

#include "common/base/check.h"

namespace loopfleet::worker {

double ReductionIdentity(looptree::Op op) {
  switch (op) {
    case looptree::Op::kAdd: return 0;
    case looptree::Op::kMultiply: return 1;
    case looptree::Op::kMin: return std::numeric_limits<double>::infinity();
    case looptree::Op::kMax: return -std::numeric_limits<double>::infinity();
    default: LF_CHECK(false, "{} does not reduce", looptree::OpName(op)); return 0;
  }
}

std::vector<BufferSpec> BufferSpecsOf(const KernelPlan& plan) {
  std::vector<BufferSpec> specs;
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.role == BufferSpec::Role::kScratch) continue;
    specs.push_back(
        {.role = buffer.role, .element_count = static_cast<std::uint64_t>(buffer.element_count)});
  }
  if (plan.scratch_bytes > 0) {
    specs.push_back(
        {.role = BufferSpec::Role::kScratch, .element_count = plan.scratch_bytes / sizeof(float)});
  }
  return specs;
}

}  // namespace loopfleet::worker
