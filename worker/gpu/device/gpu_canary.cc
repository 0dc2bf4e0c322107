#include "worker/gpu/device/gpu_canary.h"

#include <utility>

#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"
#include "worker/gpu/codegen/gpu_compiler.h"

namespace loopfleet::worker {
namespace {

constexpr int kSize = 64;

// Small integers, so that the sums of products are exact.
looptree::Tensor Numbers(int factor) {
  looptree::Tensor tensor(kSize * kSize);
  for (int i = 0; i < kSize * kSize; ++i) {
    tensor[static_cast<std::size_t>(i)] = static_cast<float>(i * factor % 17 - 8);
  }
  return tensor;
}

looptree::Tensor Product(const looptree::Tensor& a, const looptree::Tensor& b) {
  looptree::Tensor product(kSize * kSize);
  const auto at = [](int row, int column) {
    return static_cast<std::size_t>(row * kSize + column);
  };
  for (int m = 0; m < kSize; ++m) {
    for (int n = 0; n < kSize; ++n) {
      float sum = 0;
      for (int k = 0; k < kSize; ++k) sum += a[at(m, k)] * b[at(k, n)];
      product[at(m, n)] = sum;
    }
  }
  return product;
}

}  // namespace

Result<GpuCanary> MakeGpuCanary(GpuArch arch) {
  LF_TRY(const auto compiler, GpuCompiler::Create({.arch = arch, .limits = {}}));
  const auto actions = looptree::ParseActionList("swap_down");
  const auto replayed =
      looptree::Replay(looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"}, actions.value());
  if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
  auto kernel = compiler->Compile(replayed->tree);
  if (!kernel) return Fail(ErrorKind::kInvalid, kernel.error().message);
  GpuCanary canary{.kernel = *std::move(kernel), .code = {}, .inputs = {}, .outputs = {}};
  canary.code = canary.kernel.ptx;
  canary.inputs = {Numbers(3), Numbers(5)};
  canary.outputs = {Product(canary.inputs[0], canary.inputs[1])};
  return canary;
}

}  // namespace loopfleet::worker
