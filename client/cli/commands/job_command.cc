#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/explanation_text.h"
#include "client/cli/text/outcome_text.h"
#include "client/job_line.h"
#include "client/local_cluster.h"
#include "client/outcome_json.h"
#include "common/base/check.h"
#include "common/base/enum_names.h"
#include "common/base/printable.h"
#include "common/base/subprocess.h"
#include "common/base/suggestion.h"
#include "common/job/profile.h"
#include "common/job/task.h"
#include "common/llvm_passes/observation.h"

namespace loopfleet::client {
namespace {

struct JobFlags {
  std::string job;
  bool json = false;
};

// The job of index 3 in batch 12 is "12.3" or "12/3".
std::optional<JobId> JobNamed(std::string text) {
  std::ranges::replace(text, '/', '.');
  return ParseJobId(text);
}

void PrintJson(const wire::JobInfo& info) {
  Json json;
  json["job"] = fmt::format("{}", info.job);
  json["state"] = JobStateName(info.state);
  json["attempts"] = info.attempts;
  json["worker"] = info.worker.empty() ? Json(nullptr) : Json(info.worker);
  json["spec"] = Json::parse(JobLine(info.spec));
  json["outcome"] = info.outcome ? OutcomeJson(*info.outcome) : Json(nullptr);
  fmt::print("{}\n", Dump(json));
}

void PrintText(const wire::JobInfo& info) {
  fmt::print("job {}: {}", info.job, JobStateName(info.state));
  if (info.state == wire::JobState::kLeased) {
    fmt::print(" by {}, attempt {}", Printable(info.worker), info.attempts);
  }
  // Still JSON: its own escapes.
  fmt::print("\n{}\n", Json::parse(JobLine(info.spec)).dump(-1, ' ', true));
  if (!info.outcome) return;
  if (info.outcome->evaluation.ok()) {
    fmt::print("{}", AnswerText(info.spec, *info.outcome));
  } else {
    fmt::print("failed: {}\n", FailureText(info.outcome->evaluation.failure()));
  }
}

int NoJob(const std::string& text) {
  fmt::print(stderr, "loopfleet: '{}' is not a job: give BATCH.INDEX, for example 12.3\n", text);
  return kExitUsage;
}

int RunShow(const JobFlags& flags, const CommandRun& run) {
  const auto job = JobNamed(flags.job);
  if (!job) return NoJob(flags.job);
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto info = client->ShowJob(*job);
  if (!info) return Report(info.error());
  flags.json ? PrintJson(*info) : PrintText(*info);
  return kExitOk;
}

int RunExplain(const JobFlags& flags, const CommandRun& run) {
  const auto job = JobNamed(flags.job);
  if (!job) return NoJob(flags.job);
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto explanation = client->ExplainJob(*job);
  if (!explanation) return Report(explanation.error());
  if (flags.json) {
    fmt::print("{}\n", Dump(ExplanationJson(*explanation)));
  } else {
    fmt::print("{}", ExplanationText(*explanation));
  }
  return kExitOk;
}

void AddExplain(CommandLine& line, CLI::App& noun) {
  const auto flags = std::make_shared<JobFlags>();
  CLI::App& explain = line.AddCommand(
      noun,
      {.name = "explain",
       .description = "Why a job waits, right now: what is before it, which workers match and why "
                      "the others do not; who has it, or how it ended",
       .examples = "loopfleet job explain 12.3\n"
                   "loopfleet job explain 12.3 --json"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunExplain(*flags, run); });
  explain.add_option("job", flags->job, "BATCH.INDEX")->type_name("JOB")->required();
  explain.add_flag("--json", flags->json, "print one JSON value");
}

constexpr std::string_view kIrFormat = "llvm-ir";
constexpr std::array<std::string_view, 7> kCodeFormats = {"c",     "llvm-ir", "asm", "object",
                                                          "facts", "wasm",    "ptx"};
constexpr Nanos kEmitLimit = std::chrono::minutes(2);  // far above a worker's compile limit

struct CodeFlags {
  std::string job;
  std::string format;  // "": c, and of a job of passes llvm-ir
  std::string isa;
};

// The GPU that measured a job; null: none.
const HardwareFacts* GpuOf(const wire::JobInfo& info) {
  if (!info.outcome || !info.outcome->evaluation.conditions) return nullptr;
  const HardwareFacts& hardware = info.outcome->evaluation.conditions->hardware;
  return hardware.device == DeviceKind::kCuda ? &hardware : nullptr;
}

// Runs `loopfleet-worker emit`, from the directory of this program: only workers have a compiler.
Result<ExitStatus> Emit(const CodeFlags& flags, const wire::JobInfo& info) {
  const std::string format = flags.format.empty() ? "c" : flags.format;
  LF_TRY(const UniqueFd line, MemoryFile(JobLine(info.spec) + "\n"));
  Subprocess::Options options{
      .argv = {(OwnDirectory() / "loopfleet-worker").native(), "emit", "--format", format},
      .stdin_fd = line.get()};
  if (!flags.isa.empty()) options.argv.insert(options.argv.end(), {"--isa", flags.isa});
  if (const HardwareFacts* gpu = GpuOf(info); gpu != nullptr) {
    // Code for the GPU that measured it, unless CPU code was requested.
    const bool is_for_gpu = flags.isa.empty() && format != "c" && format != "asm" &&
                            format != "object" && format != "wasm";
    if (is_for_gpu) options.argv.insert(options.argv.end(), {"--gpu-arch", gpu->isa});
  } else if (info.outcome && !info.outcome->evaluation.code_hash.empty()) {
    options.argv.insert(options.argv.end(), {"--code-hash", info.outcome->evaluation.code_hash});
  }
  LF_TRY(Subprocess worker, Subprocess::Start(options));
  const auto status = worker.WaitFor(kEmitLimit);
  if (!status) return Fail(ErrorKind::kTimeout, "the code was not made in two minutes");
  return *status;
}

// The one observed value of this job, a text. kNotFound: the coordinator keeps it no more.
Answer<std::string> FetchText(Client& client, const JobSpec& spec) {
  std::optional<Outcome> outcome;
  LF_TRY_VOID(client.Evaluate(std::span(&spec, 1), [&](const Outcome& one) { outcome = one; }));
  LF_CHECK(outcome, "a batch ended without the outcome of its job");
  if (!outcome->evaluation.ok()) {
    return std::unexpected(CallError{.kind = ErrorKind::kSystem,
                                     .message = FailureText(outcome->evaluation.failure())});
  }
  const ObservedValue& value = outcome->evaluation.observed().values.at(spec.observe.front());
  if (const auto* blob = std::get_if<Blob>(&value)) return client.GetBlob(blob->sha256);
  return std::get<std::string>(value);
}

// What a job's passes left: asked of the fleet, which may have to run them again.
int PrintPassIr(const CodeFlags& flags, Client& client, const wire::JobInfo& info) {
  if (!flags.format.empty() && flags.format != kIrFormat) {
    fmt::print(stderr, "loopfleet: --format {}: job {} runs passes over a program: only {}\n",
               flags.format, info.job, kIrFormat);
    return kExitUsage;
  }
  JobSpec spec = info.spec;
  spec.observe = {std::string(passes::InfoOf(passes::Observation::kIr).name)};
  auto text = FetchText(client, spec);
  if (!text && text.error().kind == ErrorKind::kNotFound) {  // stored, but kept no more
    spec.freshness = Freshness::kMeasureAgain;
    text = FetchText(client, spec);
  }
  if (!text) return Report(text.error());
  fmt::print("{}", *text);
  return kExitOk;
}

int RunCode(const CodeFlags& flags, const CommandRun& run) {
  const auto job = JobNamed(flags.job);
  if (!job) return NoJob(flags.job);
  if (!flags.format.empty() &&
      std::ranges::find(kCodeFormats, flags.format) == kCodeFormats.end()) {
    fmt::print(stderr, "loopfleet: --format {}: must be {}{}\n", flags.format,
               fmt::join(kCodeFormats, ", "), NearestSuffix(flags.format, kCodeFormats));
    return kExitUsage;
  }
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto info = client->ShowJob(*job);
  if (!info) return Report(info.error());
  const TaskKind kind = TaskOf(info->spec).kind;
  if (kind == TaskKind::kPasses) return PrintPassIr(flags, *client, *info);
  if (kind != TaskKind::kLoopSchedule) {
    fmt::print(stderr, "loopfleet: job {} is of kind {}, which has no code\n", info->job,
               EnumName(kind));
    return kExitFailed;
  }
  const Result<ExitStatus> status = Emit(flags, *info);
  if (!status) {
    fmt::print(stderr, "loopfleet: {}\n", status.error().message);
    return kExitFailed;
  }
  if (status->signal != 0) {
    fmt::print(stderr, "loopfleet: loopfleet-worker emit {}\n", ToString(*status));
  }
  return status->code == 0 ? kExitOk : kExitFailed;
}

void AddCode(CommandLine& line, CLI::App& noun) {
  const auto flags = std::make_shared<CodeFlags>();
  CLI::App& code = line.AddCommand(
      noun,
      {.name = "code",
       .description = "The code of a job, made again: of loops by the worker program beside this "
                      "one, of passes by the fleet",
       .examples = "loopfleet job code 12.3 --format c\n"
                   "loopfleet job code 12.3 --format object > kernel.o"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunCode(*flags, run); });
  code.add_option("job", flags->job, "BATCH.INDEX")->type_name("JOB")->required();
  code.add_option("--format", flags->format,
                  "c (default), llvm-ir, asm, object, facts about the code as JSON, wasm, or ptx "
                  "where a GPU measured the job; of a job of passes llvm-ir, as the passes left it")
      ->type_name(fmt::format("FORMAT:{{{}}}", fmt::join(kCodeFormats, ",")));
  code.add_option("--isa", flags->isa,
                  "host, avx512, avx2, baseline, aarch64 or wasm32; without it the host's");
}

struct ProfileFlags {
  std::string job;
  std::string level{EnumName(ProfileLevel::kLines)};
  bool fresh = false;
  bool json = false;
};

int RunProfile(const ProfileFlags& flags, const CommandRun& run) {
  const auto job = JobNamed(flags.job);
  if (!job) return NoJob(flags.job);
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto info = client->ShowJob(*job);
  if (!info) return Report(info.error());
  const TaskKind kind = TaskOf(info->spec.source).kind;
  if (kind != TaskKind::kLoopSchedule) {
    fmt::print(stderr, "loopfleet: job {} is of kind {}: only loop schedules have a profile\n",
               info->job, EnumName(kind));
    return kExitFailed;
  }
  JobSpec spec = AsProfile(info->spec, *ValueNamed<ProfileLevel>(flags.level));
  spec.freshness = flags.fresh ? Freshness::kMeasureAgain : Freshness::kAllowStored;
  std::optional<Outcome> outcome;
  const auto asked =
      client->Evaluate(std::span(&spec, 1), [&](const Outcome& one) { outcome = one; });
  if (!asked) return Report(asked.error());
  LF_CHECK(outcome, "a batch ended without the outcome of its job");
  const bool is_ok = outcome->evaluation.ok();
  if (flags.json) {
    fmt::print("{}\n", Dump(OutcomeJson(*outcome)));
  } else if (is_ok) {
    fmt::print("{}", AnswerText(spec, *outcome));
  } else {
    fmt::print(stderr, "loopfleet: {}\n", FailureText(outcome->evaluation.failure()));
  }
  return is_ok ? kExitOk : kExitFailed;
}

void AddProfile(CommandLine& line, CLI::App& noun) {
  const auto flags = std::make_shared<ProfileFlags>();
  CLI::App& profile = line.AddCommand(
      noun,
      {.name = "profile",
       .description = "Where the time of a job's kernel goes, beside its loop tree: a job of its "
                      "own, which a worker runs now if no equal one is stored",
       .examples = "loopfleet job profile 12.3\n"
                   "loopfleet job profile 12.3 --level loops"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunProfile(*flags, run); });
  profile.add_option("job", flags->job, "BATCH.INDEX")->type_name("JOB")->required();
  profile
      .add_option(
          "--level", flags->level,
          "roots: by a clock between them; loops: by counters in a copy of the kernel; lines "
          "(default): by samples of the kernel itself")
      ->check(CLI::IsMember({"roots", "loops", "lines"}));
  profile.add_flag("--fresh", flags->fresh, "profile it again even if the store has a profile");
  profile.add_flag("--json", flags->json, "print the outcome as one JSON value");
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
  AddExplain(line, noun);
  AddCode(line, noun);
  AddProfile(line, noun);
}

}  // namespace loopfleet::client
