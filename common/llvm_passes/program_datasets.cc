#include "common/llvm_passes/program_datasets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "common/base/check.h"
#include "common/llvm_passes/debian_programs.h"
#include "common/llvm_passes/program_uri.h"

namespace loopfleet::passes {
namespace {

constexpr std::uint64_t kSeeds = std::uint64_t{1} << 32;
constexpr std::string_view kSmall = "benchmark://small-v0/";
constexpr std::string_view kDebian = "benchmark://debian-v0/";

}  // namespace

std::span<const ProgramDataset> ProgramDatasets() {
  static const std::array datasets = {
      ProgramDataset{"generator://csmith-v0/", "LLVM passes: the C that Csmith writes for a seed",
                     kSeeds, "generator://csmith-v0/7"},
      ProgramDataset{"generator://llvm-stress-v0/",
                     "LLVM passes: the IR that llvm-stress writes for a seed", kSeeds,
                     "generator://llvm-stress-v0/7"},
      ProgramDataset{kSmall, "LLVM passes: small C programs that print a checksum",
                     SmallProgramNames().size(), "benchmark://small-v0/qsort"},
      ProgramDataset{kDebian,
                     "LLVM passes: libraries of Debian, in a folder of the worker (docs/LLVM.md)",
                     DebianPins().size(), "benchmark://debian-v0/bzip2"},
      ProgramDataset{"bitcode://sha256/", "LLVM passes: bitcode of yours, by `loopfleet llvm add`",
                     0,
                     "bitcode://sha256/"
                     "0f343b0931126a20f133d67c2b018a3b00000000000000000000000000000000"},
  };
  return datasets;
}

std::string ProgramMember(const ProgramDataset& dataset, std::uint64_t index) {
  LF_CHECK(index < dataset.size, "member {} of the {} of {}", index, dataset.size, dataset.prefix);
  if (dataset.prefix == kSmall) {
    return fmt::format("{}{}", dataset.prefix, SmallProgramNames()[index]);
  }
  if (dataset.prefix == kDebian) {
    return fmt::format("{}{}", dataset.prefix, DebianPins()[index].name);
  }
  return fmt::format("{}{}", dataset.prefix, index);
}

const ProgramDataset& DatasetOfProgram(std::string_view uri) {
  const auto found = std::ranges::find_if(ProgramDatasets(), [&](const ProgramDataset& dataset) {
    return uri.starts_with(dataset.prefix);
  });
  LF_CHECK(found != ProgramDatasets().end(), "'{}' is of no dataset", uri);
  return *found;
}

}  // namespace loopfleet::passes
