#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>

#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/outcome_text.h"
#include "client/job_line.h"
#include "client/outcome_json.h"

namespace loopfleet::client {
namespace {

struct JobFlags {
  std::string job;
  bool json = false;
};

// "12.3": the job of index 3 in batch 12.
std::optional<JobId> ParseJobId(const std::string& text) {
  JobId id;
  const char* end = text.data() + text.size();
  const auto batch = std::from_chars(text.data(), end, id.batch.value);
  if (batch.ec != std::errc{} || batch.ptr == end || *batch.ptr != '.') return std::nullopt;
  const auto index = std::from_chars(batch.ptr + 1, end, id.index);
  if (index.ec != std::errc{} || index.ptr != end || !id.batch) return std::nullopt;
  return id;
}

std::string_view StateName(wire::JobState state) {
  switch (state) {
    case wire::JobState::kQueued: return "queued";
    case wire::JobState::kLeased: return "leased";
    case wire::JobState::kFinished: return "finished";
  }
  return "";
}

void PrintJson(const wire::JobInfo& info) {
  Json json;
  json["job"] = fmt::format("{}", info.job);
  json["state"] = StateName(info.state);
  json["attempts"] = info.attempts;
  json["worker"] = info.worker.empty() ? Json(nullptr) : Json(info.worker);
  json["spec"] = Json::parse(JobLine(info.spec));
  json["outcome"] = info.outcome ? OutcomeJson(*info.outcome) : Json(nullptr);
  fmt::print("{}\n", Dump(json));
}

void PrintText(const wire::JobInfo& info) {
  fmt::print("job {}: {}", info.job, StateName(info.state));
  if (info.state == wire::JobState::kLeased) {
    fmt::print(" by {}, attempt {}", info.worker, info.attempts);
  }
  fmt::print("\n{}\n", JobLine(info.spec));
  if (!info.outcome) return;
  if (info.outcome->evaluation.ok()) {
    fmt::print("{}", MeasurementText(info.spec, *info.outcome));
  } else {
    fmt::print("failed: {}\n", FailureText(info.outcome->evaluation.failure()));
  }
}

int RunShow(const JobFlags& flags, const CommandRun& run) {
  const auto job = ParseJobId(flags.job);
  if (!job) {
    fmt::print(stderr, "loopfleet: '{}' is not a job: give BATCH.INDEX, for example 12.3\n",
               flags.job);
    return kExitUsage;
  }
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto info = client->ShowJob(*job);
  if (!info) return Report(info.error());
  flags.json ? PrintJson(*info) : PrintText(*info);
  return kExitOk;
}

}  // namespace

void AddJobCommands(CommandLine& line) {
  CLI::App& noun = line.AddNoun(
      {.name = "job", .description = "Look at one job", .examples = "loopfleet job show 12.3"});
  const auto flags = std::make_shared<JobFlags>();
  CLI::App& show = line.AddCommand(
      noun, {.name = "show", .description = "A job, where it is, and its outcome", .examples = {}},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunShow(*flags, run); });
  show.add_option("job", flags->job, "BATCH.INDEX")->type_name("JOB")->required();
  show.add_flag("--json", flags->json, "print one JSON value");
}

}  // namespace loopfleet::client
