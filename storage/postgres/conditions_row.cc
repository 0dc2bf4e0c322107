#include "storage/postgres/conditions_row.h"

#include <fmt/format.h>

#include <utility>

namespace loopfleet::storage {
namespace {

constexpr double kGiga = 1e9;

// The facts that outcomes leave out, by name.
template <class Facts, class Visit>
void ForEachOtherFact(Facts& facts, const Visit& visit) {
  visit("physical_cores", facts.physical_cores);
  visit("logical_cores", facts.logical_cores);
  visit("l1d_bytes", facts.l1d_bytes);
  visit("l2_bytes", facts.l2_bytes);
  visit("l3_bytes", facts.l3_bytes);
  visit("memory_bytes", facts.memory_bytes);
}

template <class Value>
void ReadInto(const Json& json, const char* name, Value& value) {
  const auto found = json.find(name);
  if (found == json.end()) return;
  if constexpr (std::is_arithmetic_v<Value>) {
    if (found->is_number()) value = found->template get<Value>();
  } else {
    if (found->is_string()) value = found->template get<Value>();
  }
}

double ReadRate(const Json& json, const char* name) {
  double giga = 0;
  ReadInto(json, name, giga);
  return giga * kGiga;
}

}  // namespace

Json FactsJson(const HardwareFacts& facts) {
  Json json = HardwareJson(facts);
  ForEachOtherFact(facts, [&](const char* name, const auto& value) { json[name] = value; });
  return json;
}

HardwareFacts FactsOf(DeviceKind device, const Json& json) {
  HardwareFacts facts{.device = device};
  ReadInto(json, "class", facts.hardware_class);
  ReadInto(json, "model", facts.model);
  ReadInto(json, "isa", facts.isa);
  ReadInto(json, "clock_mhz", facts.clock_mhz);
  ReadInto(json, "microcode", facts.microcode);
  ReadInto(json, "host", facts.host);
  ReadInto(json, "kernel", facts.kernel);
  facts.peaks = {.flop_per_second = ReadRate(json, "peak_gflop_per_second"),
                 .read_bytes_per_second = ReadRate(json, "read_gb_per_second"),
                 .triad_bytes_per_second = ReadRate(json, "triad_gb_per_second")};
  ForEachOtherFact(facts, [&](const char* name, auto& value) { ReadInto(json, name, value); });
  return facts;
}

std::string LoweringText(const CompilerFacts& compiler) {
  return fmt::format("{} {}", compiler.tier, compiler.revision);
}

CompilerFacts CompilerOf(std::string llvm, const std::string& lowering) {
  const std::size_t space = lowering.find(' ');
  CompilerFacts compiler{.llvm = std::move(llvm), .tier = lowering.substr(0, space)};
  if (space != std::string::npos) compiler.revision = lowering.substr(space + 1);
  return compiler;
}

}  // namespace loopfleet::storage
