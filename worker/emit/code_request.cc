#include "worker/emit/code_request.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <utility>
#include <vector>

#include "common/base/suggestion.h"

namespace loopfleet::worker {
namespace {

using nlohmann::json;

template <class T, std::size_t N>
Result<T> ChoiceFrom(const json& line, const char* key,
                     const std::array<std::pair<std::string_view, T>, N>& choices) {
  const auto name = line.at(key).get<std::string>();
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) {
    names[i] = choices[i].first;
    if (names[i] == name) return choices[i].second;
  }
  return Fail(ErrorKind::kInvalid,
              fmt::format("'{}' must be {}, not '{}'{}", key, fmt::join(names, " or "), name,
                          NearestSuffix(name, names)));
}

constexpr std::array kRuleSets = {
    std::pair<std::string_view, looptree::RuleSet>{"structural", looptree::RuleSet::kStructural},
    std::pair<std::string_view, looptree::RuleSet>{"loop_nest", looptree::RuleSet::kLoopNest},
    std::pair<std::string_view, looptree::RuleSet>{"loop_nest_58", looptree::RuleSet::kLoopNest58}};
constexpr std::array kOnIllegal = {
    std::pair<std::string_view, looptree::OnIllegal>{"reject", looptree::OnIllegal::kReject},
    std::pair<std::string_view, looptree::OnIllegal>{"skip", looptree::OnIllegal::kSkip}};
constexpr std::array kDialects = {
    std::pair<std::string_view, looptree::Dialect>{"simple", looptree::Dialect::kSimple},
    std::pair<std::string_view, looptree::Dialect>{"agent", looptree::Dialect::kAgent}};

Result<JobSpec> Read(const json& line) {
  JobSpec spec;
  if (!line.is_object()) return Fail(ErrorKind::kInvalid, "a job is a JSON object");
  if (line.contains("ir") == line.contains("benchmark")) {
    return Fail(ErrorKind::kInvalid, "a job needs either 'benchmark' or 'ir', and not both");
  }
  if (line.contains("ir")) {
    spec.source = looptree::IrText{line.at("ir").get<std::string>()};
  } else {
    spec.source = looptree::BenchmarkUri{line.at("benchmark").get<std::string>()};
  }
  if (!line.contains("actions")) {
    return Fail(ErrorKind::kInvalid, "a job needs 'actions': [] is none");
  }
  const auto names = line.at("actions").get<std::vector<std::string>>();
  auto actions = looptree::ParseActions(names);
  if (!actions) return Fail(ErrorKind::kInvalid, actions.error().message);
  spec.actions = *std::move(actions);
  if (line.contains("rules")) {
    LF_TRY(spec.rules, ChoiceFrom(line, "rules", kRuleSets));
  }
  if (line.contains("on_illegal")) {
    LF_TRY(spec.on_illegal, ChoiceFrom(line, "on_illegal", kOnIllegal));
  }
  if (line.contains("dialect")) {
    LF_TRY(spec.dialect, ChoiceFrom(line, "dialect", kDialects));
  }
  spec.merge_all_first = line.value("merge_all_first", false);
  spec.threads = line.value("threads", std::uint32_t{1});
  if (spec.threads == 0) return Fail(ErrorKind::kInvalid, "'threads' must be at least 1");
  return spec;
}

}  // namespace

Result<JobSpec> ParseCodeRequest(std::string_view line) {
  try {
    return Read(json::parse(line));
  } catch (const json::exception& error) {
    return Fail(ErrorKind::kInvalid, fmt::format("the job line: {}", error.what()));
  }
}

}  // namespace loopfleet::worker
