#pragma once
// Observation: what can be asked of a module after a number of passes. One table gives each its
// name and the type of its value; docs/LLVM.md says what it means.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/result.h"

namespace loopfleet::passes {

// The numbers are in private messages only.
enum class Observation : std::uint8_t {
  kIr,
  kIrSha1,
  kBitcode,
  kModuleHash,
  kInstCount,
  kInstCountNorm,
  kAutophase,
  kPrograml,
  kProgramlJson,
  kProgramlJsonFullText,
  kIrInstructionCount,
  kIrInstructionCountO0,
  kIrInstructionCountO3,
  kIrInstructionCountOz,
  kIrInstructionCountOzAttr,
  kObjectTextSizeBytes,
  kObjectTextSizeO2Bytes,
  kObjectTextSizeO0,
  kObjectTextSizeO3,
  kObjectTextSizeOz,
};
inline constexpr Observation kLastObservation = Observation::kObjectTextSizeOz;

// A number, a vector, or bytes.
using ObservationValue =
    std::variant<std::int64_t, std::vector<std::int64_t>, std::vector<float>, std::string>;

enum class ValueType : std::uint8_t {  // in the order of the variant
  kInteger,
  kIntegers,
  kFloats,
  kBytes,
};

// The reference pipeline that a baseline is measured after, instead of the job's passes.
enum class Baseline : std::uint8_t { kNone, kO0, kO3, kOz, kOzAttr };

struct ObservationInfo {
  Observation observation;
  std::string_view name;
  ValueType type;
  Baseline baseline = Baseline::kNone;
  // Part of the key of stored values: raised when the same module gets another value.
  std::uint32_t revision = 1;
};

std::span<const ObservationInfo> ObservationTable();  // every one, in the order of the enum
const ObservationInfo& InfoOf(Observation observation);
// Its bytes are no text.
constexpr bool IsBinary(Observation observation) {
  return observation == Observation::kBitcode || observation == Observation::kPrograml;
}
// kInvalid: there is none of this name; the message names the nearest one.
Result<Observation> ParseObservation(std::string_view name);

// The names of InstCount's 70 and of Autophase's 56 numbers, in order.
std::span<const std::string_view> InstCountNames();
std::span<const std::string_view> AutophaseNames();

}  // namespace loopfleet::passes
