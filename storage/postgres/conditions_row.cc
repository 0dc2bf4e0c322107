#include "storage/postgres/conditions_row.h"

#include <fmt/format.h>

#include <type_traits>

namespace loopfleet::storage {
namespace {

constexpr double kGiga = 1e9;

std::string NameOf(const HardwareFact& fact) {
  return std::string(fact.json.empty() ? fact.name : fact.json);
}

}  // namespace

Json FactsJson(const HardwareFacts& facts) {
  Json json = HardwareJson(facts);
  const auto add = [&](const HardwareFact& fact, const auto& value) {
    if constexpr (!std::is_enum_v<std::decay_t<decltype(value)>>) {  // the device has a column
      if (fact.json.empty()) json[NameOf(fact)] = value;
    }
  };
  ForEachFact(add, facts);
  return json;
}

HardwareFacts FactsOf(DeviceKind device, const Json& json) {
  HardwareFacts facts{.device = device};
  const auto read = [&](const HardwareFact& fact, auto& value) {
    using Value = std::decay_t<decltype(value)>;
    const auto found = json.find(NameOf(fact));
    if (found == json.end()) return;
    if constexpr (std::is_same_v<Value, std::string>) {
      if (found->is_string()) value = found->template get<Value>();
    } else if constexpr (!std::is_enum_v<Value>) {
      if (found->is_number()) value = found->template get<Value>();
      if (fact.is_rate) value = static_cast<Value>(value * kGiga);
    }
  };
  ForEachFact(read, facts);
  return facts;
}

std::string LoweringText(const CompilerFacts& compiler) {
  return fmt::format("{} {}", compiler.tier, compiler.revision);
}

}  // namespace loopfleet::storage
