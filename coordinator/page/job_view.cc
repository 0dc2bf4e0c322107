#include "coordinator/page/job_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/subprocess.h"
#include "common/job/loop_schedule.h"
#include "common/job/profile_rows.h"
#include "common/job/task.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/text/text.h"
#include "worker/portable_c/c_source.h"

namespace loopfleet::coordinator {
namespace {

using looptree::AgentWalk;
using looptree::Benchmark;
using looptree::SimpleWalk;

const HardwareFacts* HardwareOf(const storage::StoredJob& job) {
  if (!job.outcome || !job.outcome->evaluation.conditions) return nullptr;
  return &job.outcome->evaluation.conditions->hardware;
}

// The steps of a walk: each action, whether it was legal, and the tree after it.
class Trail {
 public:
  void Add(const looptree::Action& action, bool legal, std::string tree) {
    Json step = {{"action", looptree::ActionName(action)}, {"legal", legal}};
    bytes_ += tree.size();
    if (steps_.size() < kMaxShownSteps && bytes_ <= kMaxStepBytes) {
      step["loop_tree"] = std::move(tree);
    } else {
      step["loop_tree"] = nullptr;
    }
    steps_.push_back(std::move(step));
  }
  bool IsFull() const { return steps_.size() >= kMaxShownSteps || bytes_ > kMaxStepBytes; }
  Json Take() { return std::move(steps_); }

 private:
  Json steps_ = Json::array();
  std::size_t bytes_ = 0;
};

void WalkAgent(const JobSpec& spec, const Benchmark& benchmark, Trail& trail) {
  AgentWalk walk(benchmark, spec.rules);
  if (spec.merge_all_first && !walk.MergeAll()) return;
  for (const looptree::Action& action : spec.actions) {
    const bool legal = walk.Apply(action).has_value();
    trail.Add(action, legal,
              trail.IsFull() ? std::string()
                             : looptree::TreeText(walk.tree(), {.dialect = benchmark.dialect,
                                                                .target = benchmark.target,
                                                                .cursor = walk.cursor()}));
    if (!legal && spec.on_illegal == looptree::OnIllegal::kReject) return;
  }
}

void WalkSimple(const JobSpec& spec, const Benchmark& benchmark, Trail& trail) {
  SimpleWalk walk(benchmark);
  for (const looptree::Action& action : spec.actions) {
    if (!walk.Apply(action)) return trail.Add(action, false, "");
    const auto tree = walk.Tree();
    if (!tree) return;
    trail.Add(
        action, true,
        looptree::TreeText(*tree, {.dialect = benchmark.dialect, .target = benchmark.target}));
  }
}

Json TrailJson(const JobSpec& spec) {
  Trail trail;
  const auto benchmark = looptree::OpenBenchmark(spec.source);
  if (!benchmark) return trail.Take();
  if (benchmark->dialect == looptree::Dialect::kAgent) {
    WalkAgent(spec, *benchmark, trail);
  } else {
    WalkSimple(spec, *benchmark, trail);
  }
  return trail.Take();
}

Json TreeJson(const JobSpec& spec) {
  const auto replayed = ReplayJob(spec);
  if (!replayed) return nullptr;
  return looptree::TreeText(replayed->tree, {.dialect = replayed->benchmark.dialect,
                                             .target = replayed->benchmark.target});
}

Json Command(std::string_view what, std::string command) {
  return {{"what", what}, {"command", std::move(command)}};
}

// The flag that makes `loopfleet job code` target the CPU that measured the job.
std::string IsaFlag(const storage::StoredJob& job) {
  const HardwareFacts* hardware = HardwareOf(job);
  if (hardware == nullptr || hardware->device != DeviceKind::kCpu) return "";
  // It is a worker's text, and this is a command for people to copy.
  const bool is_name =
      !hardware->isa.empty() &&
      hardware->isa.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos;
  return is_name ? fmt::format(" --isa {}", hardware->isa) : "";
}

void AddCodeCommands(Json& commands, JobId id, const storage::StoredJob& job) {
  const auto add = [&](std::string_view what, std::string_view format, std::string_view isa) {
    commands.push_back(
        Command(what, fmt::format("loopfleet job code {} --format {}{}", id, format, isa)));
  };
  const HardwareFacts* hardware = HardwareOf(job);
  const bool is_gpu = hardware != nullptr && hardware->device == DeviceKind::kCuda;
  add("its portable C", "c", "");
  add("its LLVM IR", "llvm-ir", IsaFlag(job));
  is_gpu ? add("its PTX", "ptx", "") : add("its assembly", "asm", IsaFlag(job));
}

void AddReplayCommand(Json& commands, const JobSpec& spec) {
  Json line;
  if (const auto* ir = std::get_if<looptree::IrText>(&spec.source)) {
    line["ir"] = ir->text;
  } else {
    line["uri"] = std::get<looptree::BenchmarkUri>(spec.source).text;
  }
  line["actions"] = looptree::ActionNames(spec.actions);
  if (spec.rules == looptree::RuleSet::kLoopNest) line["rules"] = "loop_nest";
  if (spec.rules == looptree::RuleSet::kLoopNest58) line["features"] = "agent58";
  if (spec.merge_all_first) line["merge_all_first"] = true;
  line["every_step"] = true;
  // Not echo, which in zsh and dash turns the \n of a program's text into line breaks.
  commands.push_back(
      Command("every step of its tree",
              fmt::format("printf '%s\\n' {} | loopfleet replay", ShellQuoted(Dump(line)))));
}

Json CommandsJson(JobId id, const storage::StoredJob& job) {
  Json commands = Json::array();
  if (TaskOf(job.spec).kind == TaskKind::kLoopSchedule) {
    AddReplayCommand(commands, job.spec);
    AddCodeCommands(commands, id, job);
    const HardwareFacts* hardware = HardwareOf(job);
    const bool is_gpu = hardware != nullptr && hardware->device == DeviceKind::kCuda;
    commands.push_back(Command("where its time goes", fmt::format("loopfleet job profile {}{}", id,
                                                                  is_gpu ? " --level roots" : "")));
  }
  commands.push_back(Command("where it is and why", fmt::format("loopfleet job explain {}", id)));
  commands.push_back(
      Command("all that is known of it", fmt::format("loopfleet job show {} --json", id)));
  return commands;
}

// Only of trees that a worker has lowered and run.
std::optional<worker::CSource> ProfiledC(const JobSpec& spec) {
  const auto replayed = ReplayJob(spec);
  if (!replayed) return std::nullopt;
  auto source = worker::CSourceOf(replayed->tree);
  if (!source || source->text.size() > kMaxCodeBytes) return std::nullopt;
  return *std::move(source);
}

Json LineOf(const ProfilePlace& place, const std::optional<worker::CSource>& c) {
  if (!c || place.ref >= c->lines.size()) return nullptr;
  std::optional<std::size_t> line;
  if (place.part == ProfilePart::kNode) line = c->lines[place.ref].node;
  if (place.part == ProfilePart::kZero) line = c->lines[place.ref].start;
  return line ? Json(*line) : Json(nullptr);
}

Json ProfileJson(const JobSpec& spec, const Profile& profile) {
  const std::optional<worker::CSource> c = ProfiledC(spec);
  Json json = {{"level", EnumName(profile.level)},
               {"overhead", profile.overhead},
               {"note", profile.note},
               {"c", c ? Json(c->text) : Json(nullptr)},
               {"rows", Json::array()}};
  for (const ProfileRow& row : ProfileRows(spec, profile)) {
    json["rows"].push_back({{"ref", row.line.place.ref},
                            {"part", EnumName(row.line.place.part)},
                            {"text", row.text},
                            {"known", row.is_known},
                            {"share", row.line.share},
                            {"low", row.line.low},
                            {"high", row.line.high},
                            {"total", row.total},
                            {"c_line", LineOf(row.line.place, c)}});
  }
  return json;
}

}  // namespace

std::optional<Profile> FindProfile(const storage::StoredJob& job, storage::StoreReader& reader) {
  if (!job.outcome || !job.outcome->evaluation.ok()) return std::nullopt;
  const Evaluation& evaluation = job.outcome->evaluation;
  if (!evaluation.is_timed()) return ProfileOf(evaluation.observed());
  if (!evaluation.subject || !evaluation.conditions) return std::nullopt;
  const Conditions& conditions = *evaluation.conditions;
  for (const ProfileLevel level :
       {ProfileLevel::kLines, ProfileLevel::kLoops, ProfileLevel::kRoots}) {
    const auto found =
        reader.FindObservation({.subject = ProfileSubject(*evaluation.subject, level),
                                .hardware_class = conditions.hardware.hardware_class,
                                .compiler = conditions.compiler,
                                .threads = conditions.threads,
                                .cache = CacheState::kWarm,
                                .policy = conditions.policy},
                               storage::ObservedValues::kRead);
    if (found && *found) return ProfileOf((*found)->evaluation.observed());
  }
  return std::nullopt;
}

Json JobViewJson(JobId id, const storage::StoredJob& job, const Profile* profile) {
  const JobSpec& spec = job.spec;
  Json json;
  json["job"] = fmt::format("{}", id);
  json["state"] = job.outcome ? "finished" : "unfinished";
  json["kind"] = EnumName(TaskOf(spec).kind);
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&spec.source);
  json["benchmark"] = uri != nullptr ? Json(uri->text) : Json(nullptr);
  json["actions"] = looptree::ActionNames(spec.actions);
  json["asked"] = {
      {"rules", EnumName(spec.rules)}, {"threads", spec.threads},
      {"cache", EnumName(spec.cache)}, {"labels", spec.labels},
      {"priority", spec.priority},     {"fresh", spec.freshness == Freshness::kMeasureAgain}};
  json["loop_tree"] = TreeJson(spec);
  json["profile"] = profile == nullptr ? Json(nullptr) : ProfileJson(spec, *profile);
  json["trail"] = TrailJson(spec);
  json["commands"] = CommandsJson(id, job);
  json["outcome"] = job.outcome ? OutcomeJson(*job.outcome) : Json(nullptr);
  return json;
}

Json OutcomeRowJson(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&outcome.benchmark);
  Json row = {{"job", fmt::format("{}", outcome.job)},
              {"sequence", outcome.sequence},
              {"benchmark", uri != nullptr ? Json(uri->text) : Json(nullptr)},
              {"actions", looptree::ActionNames(outcome.actions)},
              {"status", evaluation.ok() ? "ok" : "failed"},
              {"worker", outcome.worker.empty() ? Json(nullptr) : Json(outcome.worker)}};
  if (evaluation.is_timed()) {
    const Measurement& measurement = evaluation.measurement();
    row["gflop_per_second"] = GflopPerSecond(evaluation.flop_count, measurement);
    row["elapsed_ns"] = measurement.elapsed_ns;
    row["grade"] = EnumName(measurement.grade);
  } else if (!evaluation.ok()) {
    row["error"] = FailureJson(evaluation.failure());
  }
  return row;
}

}  // namespace loopfleet::coordinator
