#include "common/llvm_passes/program_uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "common/base/number_in.h"
#include "common/base/sha256.h"
#include "common/base/suggestion.h"
#include "common/llvm_passes/debian_programs.h"

namespace loopfleet::passes {
namespace {

constexpr std::array<std::string_view, 5> kSmallPrograms = {"bitcount", "dijkstra", "patricia",
                                                            "qsort", "stringsearch"};

constexpr std::string_view kCsmith = "generator://csmith-v0";
constexpr std::string_view kStress = "generator://llvm-stress-v0";
constexpr std::string_view kSmall = "benchmark://small-v0";
constexpr std::string_view kDebian = "benchmark://debian-v0";
constexpr std::string_view kBitcode = "bitcode://sha256";
constexpr std::array kDatasets = {kCsmith, kStress, kSmall, kDebian, kBitcode};

std::unexpected<Error> Refuse(std::string message) {
  return Fail(ErrorKind::kInvalid, std::move(message));
}

Result<std::uint32_t> ParseSeed(std::string_view uri, std::string_view text) {
  const auto seed = NumberIn<std::uint32_t>(text);
  const bool is_plain = text.size() == 1 || !text.starts_with('0');  // one spelling for each seed
  if (!seed || !is_plain) {
    return Refuse(fmt::format("'{}' needs a seed from 0 to 4294967295, not '{}'", uri, text));
  }
  return *seed;
}

}  // namespace

Result<ProgramUri> ParseProgramUri(std::string_view uri) {
  constexpr std::size_t kLongestUri = 256;
  if (uri.size() > kLongestUri) {
    return Refuse(fmt::format("a program URI of {} characters; at most {} are taken", uri.size(),
                              kLongestUri));
  }
  if (uri.starts_with("file://")) {
    return Refuse(fmt::format(
        "'{}': a worker opens no paths of a job; add the file to its programs: loopfleet llvm add",
        uri));
  }
  const std::size_t slash = uri.rfind('/');
  const std::string_view dataset = uri.substr(0, slash == std::string_view::npos ? 0 : slash);
  const std::string_view name = slash == std::string_view::npos ? uri : uri.substr(slash + 1);
  if (dataset == kCsmith) {
    LF_TRY(const std::uint32_t seed, ParseSeed(uri, name));
    return CsmithProgram{seed};
  }
  if (dataset == kStress) {
    LF_TRY(const std::uint32_t seed, ParseSeed(uri, name));
    return StressProgram{seed};
  }
  if (dataset == kSmall) {
    if (std::ranges::find(kSmallPrograms, name) != kSmallPrograms.end()) {
      return SmallProgram{std::string(name)};
    }
    return Refuse(
        fmt::format("small-v0 has no program '{}'{}", name, NearestSuffix(name, kSmallPrograms)));
  }
  if (dataset == kDebian) {
    if (FindDebianPin(name) != nullptr) return DebianProgram{std::string(name)};
    std::vector<std::string_view> names;
    for (const DebianPin& pin : DebianPins()) names.push_back(pin.name);
    return Refuse(fmt::format("debian-v0 has no program '{}'{}", name, NearestSuffix(name, names)));
  }
  if (dataset == kBitcode) {
    if (IsSha256(name)) return BitcodeProgram{std::string(name)};
    return Refuse(fmt::format("'{}' needs 64 lower-case hexadecimal digits", uri));
  }
  const auto names_dataset = [&](std::string_view known) {
    return uri.starts_with(known) && (uri.size() == known.size() || uri[known.size()] == '/');
  };
  if (std::ranges::any_of(kDatasetsElsewhere, names_dataset)) {
    return Refuse(
        fmt::format("'{}' cannot be had here: bring its .bc files: loopfleet llvm add", uri));
  }
  return Refuse(fmt::format(
      "unknown program '{}'{}; a program is {}/<seed>, {}/<seed>, {}/<name>, "
      "{}/<name> or {}/<hash>",
      uri, NearestSuffix(dataset, kDatasets), kCsmith, kStress, kSmall, kDebian, kBitcode));
}

std::string ToString(const ProgramUri& uri) {
  struct Visitor {
    std::string operator()(const CsmithProgram& program) const {
      return fmt::format("{}/{}", kCsmith, program.seed);
    }
    std::string operator()(const StressProgram& program) const {
      return fmt::format("{}/{}", kStress, program.seed);
    }
    std::string operator()(const SmallProgram& program) const {
      return fmt::format("{}/{}", kSmall, program.name);
    }
    std::string operator()(const DebianProgram& program) const {
      return fmt::format("{}/{}", kDebian, program.name);
    }
    std::string operator()(const BitcodeProgram& program) const {
      return fmt::format("{}/{}", kBitcode, program.sha256);
    }
  };
  return std::visit(Visitor{}, uri);
}

std::string BitcodeFile(std::string_view sha256) { return fmt::format("bitcode/{}.bc", sha256); }

std::string ProgramKey(const ProgramUri& uri) {
  const auto* debian = std::get_if<DebianProgram>(&uri);
  const DebianPin* pin = debian != nullptr ? FindDebianPin(debian->name) : nullptr;
  return pin != nullptr ? fmt::format("{} {}", ToString(uri), pin->sha256) : ToString(uri);
}

std::span<const std::string_view> SmallProgramNames() { return kSmallPrograms; }

}  // namespace loopfleet::passes
