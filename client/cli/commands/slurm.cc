#include "client/cli/commands/slurm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "common/base/number_in.h"
#include "common/job/job_spec.h"
#include "common/wire/transport/endpoint.h"

namespace loopfleet::client {
namespace {

constexpr std::string_view kJobName = "loopfleet-worker";  // as in the sbatch script
constexpr char kColumnEnd = '|';
// Array job, index, state, node, time used, time left, reason, comment (last, because it is free
// text).
constexpr std::string_view kFormat = "%F|%K|%T|%N|%M|%L|%r|%k";
constexpr std::size_t kColumns = 8;

std::vector<std::string_view> Split(std::string_view text, char separator, std::size_t most) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < most) {
    const std::size_t end = text.find(separator);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

Status CheckLabels(const std::vector<std::string>& labels) {
  for (const std::string& label : labels) {
    if (const auto why = ValidateLabel(label)) {
      return Fail(ErrorKind::kInvalid, fmt::format("--labels '{}': {}", label, *why));
    }
  }
  return {};
}

}  // namespace

Result<std::optional<std::chrono::seconds>> ParseSlurmTime(std::string_view text) {
  const auto wrong = [&] {
    return Fail(ErrorKind::kInvalid,
                fmt::format("--time '{}': minutes, minutes:seconds, hours:minutes:seconds, "
                            "days-hours, days-hours:minutes or days-hours:minutes:seconds",
                            text));
  };
  if (text == "UNLIMITED" || text == "INFINITE") return std::nullopt;
  constexpr std::int64_t kDay = 86'400, kHour = 3'600, kMinute = 60;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  std::int64_t total = 0;
  if (has_days) {
    const auto days = NumberIn<std::uint32_t>(text.substr(0, dash));
    if (!days) return wrong();
    total = *days * kDay;
  }
  const auto parts = Split(has_days ? text.substr(dash + 1) : text, ':', 4);
  if (parts.size() > 3) return wrong();
  // The number of parts determines the unit of the first one.
  constexpr std::array kUnits = {kHour, kMinute, std::int64_t{1}};
  const std::size_t first = has_days ? 0 : std::array<std::size_t, 4>{0, 1, 1, 0}[parts.size()];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = NumberIn<std::uint32_t>(parts[i]);
    if (!number) return wrong();
    total += *number * kUnits[first + i];
  }
  if (total == 0) return wrong();  // sbatch reads 0 as "no limit"; UNLIMITED says so clearly
  return std::chrono::seconds(total);
}

Result<std::vector<std::string>> SbatchCommand(const SlurmRequest& request) {
  const auto protection = request.keys.empty() ? wire::Protection::kNone : wire::Protection::kKeys;
  if (request.keys.empty() && !wire::CheckConnectEndpoint(request.coordinator) &&
      wire::CheckConnectEndpoint(request.coordinator, wire::Protection::kKeys)) {
    // The endpoint's own error names the option of the worker, --keys.
    return Fail(ErrorKind::kInvalid,
                fmt::format("--coordinator: '{}' needs keys; add `--worker-keys DIR`, with the key "
                            "that `loopfleet keygen --role worker --name NAME --out DIR "
                            "--authorize COORDINATORS_KEYS` makes where the coordinator runs",
                            request.coordinator));
  }
  if (const Status usable = wire::CheckConnectEndpoint(request.coordinator, protection); !usable) {
    return Fail(ErrorKind::kInvalid, "--coordinator: " + usable.error().message);
  }
  LF_TRY_VOID(CheckLabels(request.labels));
  if (!request.time.empty()) {
    LF_TRY(const auto limit, ParseSlurmTime(request.time));
    if (limit && *limit <= request.drain_before) {
      return Fail(ErrorKind::kInvalid,
                  fmt::format("--time {} is {} s, and --drain-before {} s: no time to work in",
                              request.time, limit->count(), request.drain_before.count()));
    }
  }
  std::vector<std::string> command = {
      "sbatch",
      "--parsable",
      fmt::format("--job-name={}", kJobName),
      fmt::format("--array=0-{}", request.workers - 1),
      fmt::format("--signal=B:USR1@{}", request.drain_before.count()),
      fmt::format("--comment={}", request.coordinator)};
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) command.push_back(fmt::format("--{}={}", name, value));
  };
  add("partition", request.partition);
  add("account", request.account);
  add("time", request.time);
  add("gres", request.gres);
  add("cpus-per-task", request.cpus == 0 ? "" : std::to_string(request.cpus));
  command.insert(command.end(), request.sbatch.begin(), request.sbatch.end());
  command.insert(command.end(), {"/dev/stdin", request.program, "--coordinator",
                                 request.coordinator, "--device", request.device});
  if (!request.keys.empty()) command.insert(command.end(), {"--keys", request.keys});
  if (!request.labels.empty()) {
    command.insert(command.end(), {"--labels", fmt::format("{}", fmt::join(request.labels, ","))});
  }
  return command;
}

std::string SlurmTask::id() const { return fmt::format("{}_{}", allocation, index); }
std::string SlurmTask::label() const { return "slurm=" + id(); }

std::vector<std::string> SqueueCommand() {
  return {"squeue",
          "--me",
          "--array",
          "--noheader",
          fmt::format("--name={}", kJobName),
          fmt::format("--format={}", kFormat)};
}

Result<std::vector<SlurmTask>> ParseTasks(std::string_view output) {
  std::vector<SlurmTask> tasks;
  for (const std::string_view line : Split(output, '\n', output.size() + 1)) {
    if (line.empty()) continue;
    const auto column = Split(line, kColumnEnd, kColumns);
    if (column.size() != kColumns) {
      return Fail(ErrorKind::kCorrupt, fmt::format("squeue printed '{}'", line));
    }
    const auto allocation = NumberIn<std::uint64_t>(column[0]);
    if (!allocation) return Fail(ErrorKind::kCorrupt, fmt::format("squeue printed '{}'", line));
    const auto index = NumberIn<std::uint32_t>(column[1]);
    if (!index) continue;  // not an array: another job of that name
    tasks.push_back({.allocation = *allocation,
                     .index = *index,
                     .state = std::string(column[2]),
                     .node = std::string(column[3]),
                     .ran = std::string(column[4]),
                     .left = std::string(column[5]),
                     .reason = column[6] == "None" ? "" : std::string(column[6]),
                     .coordinator = column[7] == "(null)" ? "" : std::string(column[7])});
  }
  return tasks;
}

bool TaskChoice::Includes(const SlurmTask& task) const {
  return (!allocation || *allocation == task.allocation) && (!index || *index == task.index);
}

Result<TaskChoice> ParseTaskChoice(std::string_view text) {
  if (text == "all") return TaskChoice{};
  const auto parts = Split(text, '_', 2);
  TaskChoice choice{.allocation = NumberIn<std::uint64_t>(parts[0]), .index = std::nullopt};
  if (parts.size() == 2) choice.index = NumberIn<std::uint32_t>(parts[1]);
  if (!choice.allocation || choice.index.has_value() != (parts.size() == 2)) {
    return Fail(
        ErrorKind::kInvalid,
        fmt::format("'{}' is no allocation: all, 123, or 123_4 for one worker of it", text));
  }
  return choice;
}

}  // namespace loopfleet::client
