#include <fmt/format.h>

#include <array>

#include "common/base/check.h"
#include "common/looptree/benchmark.h"
#include "common/looptree/dataset_rules.h"

namespace loopfleet::looptree {
namespace {

constexpr std::array kDatasets = {
    Dataset{kLoopToolCpuPrefix, "point-wise addition of two vectors of N floats, dialect simple",
            static_cast<std::uint64_t>(kMaxVectorLength), "benchmark://loop_tool-cpu-v0/1024"},
    Dataset{kLoopToolCudaPrefix,
            "point-wise addition of two vectors of N floats on a GPU, dialect simple",
            static_cast<std::uint64_t>(kMaxVectorLength), "benchmark://loop_tool-cuda-v0/1024"},
    Dataset{kMmRangePrefix,
            "matrix products C[m,n] = sum_k A[m,k] B[k,n], each size 64, 80, ... 256",
            static_cast<std::uint64_t>(kMmRange.count* kMmRange.count* kMmRange.count),
            "benchmark://mm64_256_16_range-v0/mm64_128_256"},
    Dataset{kMmPrefix, "matrix products of any size: mm<M>_<N>_<K>", 0,
            "benchmark://mm-v0/mm64_64_64"},
    Dataset{kConvPrefix, "valid convolutions, stride 1: conv<N>_<C>_<H>_<W>__<M>_<C>_<KH>_<KW>", 0,
            "benchmark://conv-v0/conv1_8_16_16__8_8_3_3"},
};

}  // namespace

std::span<const Dataset> Datasets() { return kDatasets; }

std::string DatasetMember(const Dataset& dataset, std::uint64_t index) {
  LF_CHECK(index < dataset.size, "member {} of {}", index, dataset.prefix);
  if (dataset.prefix != kMmRangePrefix) return fmt::format("{}{}", dataset.prefix, index + 1);
  constexpr auto kCount = static_cast<std::uint64_t>(kMmRange.count);
  const auto size = [](std::uint64_t place) {
    return kMmRange.first + static_cast<std::int64_t>(place % kCount) * kMmRange.step;
  };
  return fmt::format("{}mm{}_{}_{}", dataset.prefix, size(index / (kCount * kCount)),
                     size(index / kCount), size(index));
}

}  // namespace loopfleet::looptree
