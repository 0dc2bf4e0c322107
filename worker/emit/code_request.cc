#include "worker/emit/code_request.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <vector>

#include "common/base/enum_names.h"
#include "common/base/suggestion.h"

namespace loopfleet::worker {
namespace {

using nlohmann::json;

template <class E>
Result<E> ValueFrom(const json& line, const char* key) {
  const auto name = line.at(key).get<std::string>();
  if (const auto value = ValueNamed<E>(name)) return *value;
  return Fail(ErrorKind::kInvalid,
              fmt::format("'{}' must be {}, not '{}'{}", key, fmt::join(AllNames<E>(), " or "),
                          name, NearestSuffix(name, AllNames<E>())));
}

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
    LF_TRY(spec.rules, ValueFrom<looptree::RuleSet>(line, "rules"));
  }
  if (line.contains("on_illegal")) {
    LF_TRY(spec.on_illegal, ValueFrom<looptree::OnIllegal>(line, "on_illegal"));
  }
  if (line.contains("dialect")) {
    LF_TRY(spec.dialect, ValueFrom<looptree::Dialect>(line, "dialect"));
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
