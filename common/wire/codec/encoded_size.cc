// EncodedSize: upper bounds from the Cap'n Proto layout of the schema. Pointers and the fixed parts
// of structures are rounded up generously; texts and lists are counted.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/job/job_fields.h"
#include "common/wire/bounds.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::wire {
namespace {

// Fixed parts, each with room for the pointers to it and for future fields. Tests compare them with
// the output of Encode.
constexpr std::size_t kJobBytes = 256;
constexpr std::size_t kActionBytes = 16;
constexpr std::size_t kSourceBytes = 32;
constexpr std::size_t kHardwareBytes = 224;
constexpr std::size_t kCompilerBytes = 48;
constexpr std::size_t kConditionsBytes = 64;
constexpr std::size_t kRowBytes = 384;  // all columns of an evaluation and of an outcome
constexpr std::size_t kFailureBytes = 64;
constexpr std::size_t kWorkerBytes = 232;
constexpr std::size_t kDrainBytes = 64;
constexpr std::size_t kPointerBytes = 8;

// A text with its terminating zero, in whole words.
std::size_t TextBytes(const std::string& text) { return (text.size() + 8) / 8 * 8; }

std::size_t FactBytes(const std::string& text) {
  return std::min(TextBytes(text), kMaxFactBytes + 8);  // Encode truncates it
}

std::size_t SourceBytes(const looptree::Source& source) {
  return kSourceBytes + std::visit([](const auto& kind) { return TextBytes(kind.text); }, source);
}

std::size_t HardwareBytes(const HardwareFacts& facts) {
  std::size_t bytes = kHardwareBytes;
  ForEachFact(
      [&]<class T>(const HardwareFact& /*fact*/, const T& value) {
        if constexpr (std::is_same_v<T, std::string>) bytes += FactBytes(value);
      },
      facts);
  return bytes;
}

std::size_t CompilerBytes(const CompilerFacts& facts) {
  return kCompilerBytes + FactBytes(facts.llvm) + FactBytes(facts.tier) + FactBytes(facts.revision);
}

std::size_t DrainBytes(const Drain& drain) {
  return kDrainBytes + FactBytes(drain.target) + FactBytes(drain.reason) + FactBytes(drain.by);
}

std::size_t ConditionsBytes(const Conditions& conditions) {
  return kConditionsBytes + HardwareBytes(conditions.hardware) +
         CompilerBytes(conditions.compiler) + FactBytes(conditions.policy) +
         FactBytes(conditions.isolation);
}

std::size_t VerdictBytes(const Evaluation& evaluation) {
  if (evaluation.ok() && !evaluation.is_timed()) {
    constexpr std::size_t kValueBytes = 48;  // of a value, with the padding of its texts
    return BytesOf(evaluation.observed()) + evaluation.observed().values.size() * kValueBytes;
  }
  if (evaluation.ok()) {
    constexpr std::size_t kDeviceStateBytes = 48;
    constexpr std::size_t kThinnedBytes = 16;
    return (evaluation.measurement().device ? kDeviceStateBytes : 0) +
           (evaluation.measurement().thinned ? kThinnedBytes : 0) +
           evaluation.measurement().samples_ns.size() * (sizeof(double) + sizeof(std::uint8_t));
  }
  return kFailureBytes +
         std::min(TextBytes(evaluation.failure().message), kMaxFailureTextBytes + 8);
}

}  // namespace

std::size_t EncodedSize(const JobSpec& spec) {
  std::size_t bytes = kJobBytes + SourceBytes(spec.source) + spec.actions.size() * kActionBytes;
  ForEachField(
      [&]<class T>(const JobField&, const T& value) {
        if constexpr (std::is_same_v<T, std::string>) {
          bytes += TextBytes(value);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          for (const std::string& text : value) bytes += kPointerBytes + TextBytes(text);
        }
      },
      spec);
  return bytes;
}

std::size_t EncodedSize(const Evaluation& evaluation) {
  std::size_t bytes = kRowBytes + VerdictBytes(evaluation) +
                      std::min(TextBytes(evaluation.code_hash), kMaxCodeHashBytes + 8);
  if (evaluation.conditions) bytes += ConditionsBytes(*evaluation.conditions);
  for (const std::string& note : evaluation.notes) {
    bytes += kPointerBytes + std::min(TextBytes(note), kMaxNoteBytes + 8);
  }
  return bytes;
}

std::size_t EncodedSize(const Outcome& outcome) {
  return EncodedSize(outcome.evaluation) + FactBytes(outcome.worker) +
         SourceBytes(outcome.benchmark) + outcome.actions.size() * kActionBytes +
         TextBytes(outcome.tag);
}

std::size_t EncodedSize(const FleetEvent& event) {
  constexpr std::size_t kEventBytes = 64;
  return kEventBytes + TextBytes(event.kind) + FactBytes(event.subject) + FactBytes(event.text);
}

std::size_t EncodedSize(const WorkerInfo& worker) {
  std::size_t labels = 0;
  for (const std::string& label : worker.labels) labels += kPointerBytes + TextBytes(label);
  for (const std::string& text : worker.hindrances) labels += kPointerBytes + TextBytes(text);
  return labels + kWorkerBytes + FactBytes(worker.name) + FactBytes(worker.http) +
         HardwareBytes(worker.hardware) + CompilerBytes(worker.compiler) +
         FactBytes(worker.quarantine) + FactBytes(worker.outdated) +
         (worker.drain ? DrainBytes(*worker.drain) : 0);
}

}  // namespace loopfleet::wire
