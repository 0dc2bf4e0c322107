#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <optional>
#include <ranges>
#include <string_view>
#include <variant>

#include "client/cli/command_line.h"
#include "client/cli/commands/waiting_notice.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/job_options.h"
#include "client/cli/program_file.h"
#include "client/cli/text/outcome_text.h"
#include "client/job_line.h"
#include "client/outcome_json.h"
#include "common/base/enum_names.h"
#include "common/base/trim.h"
#include "common/job/task.h"

namespace loopfleet::client {
namespace {

struct EvalFlags {
  std::vector<std::string> benchmarks;
  std::vector<std::string> action_lists;  // each "a,b,c"
  std::string ir_file;
  std::string kind;              // "": by the benchmark
  Json fields = Json::object();  // of the job line, as given
  bool json = false;
  bool refine = false;
};

// One per job: the job and its outcome, or why it was not sent.
struct Asked {
  JobSpec spec;
  std::optional<Outcome> outcome;
};
using Entry = std::variant<Asked, RejectedJob>;

// Without the blanks around a name. Those within stay, so that an error names what was typed.
Json SplitActions(const std::string& list) {
  Json names = Json::array();
  for (const auto part : list | std::views::split(',')) {
    const std::string_view name = Trimmed(std::string_view(part));
    if (!name.empty()) names.push_back(std::string(name));
  }
  return names;
}

// Uses the reader of `submit`, so that both validate jobs alike.
Entry MakeEntry(const EvalFlags& flags, const char* source_field, const std::string& source,
                const std::string& actions) {
  Json line = flags.fields;
  line[source_field] = source;
  line["actions"] = SplitActions(actions);
  auto spec = ParseJobLine(Dump(line));
  if (!spec) return std::move(spec).error();
  return Asked{.spec = *std::move(spec), .outcome = {}};
}

Result<std::vector<Entry>> MakeEntries(const EvalFlags& flags) {
  std::vector<Entry> entries;
  const std::vector<std::string> lists =
      flags.action_lists.empty() ? std::vector<std::string>{""} : flags.action_lists;
  if (!flags.ir_file.empty()) {
    LF_TRY(const std::string program, ReadProgram(flags.ir_file));
    for (const auto& list : lists) entries.push_back(MakeEntry(flags, "ir", program, list));
  }
  for (const auto& benchmark : flags.benchmarks) {
    for (const auto& list : lists)
      entries.push_back(MakeEntry(flags, "benchmark", benchmark, list));
  }
  return entries;
}

Answer<void> Ask(const ClientSettings& settings, std::vector<Entry>& entries) {
  std::vector<Asked*> asked;
  std::vector<JobSpec> jobs;
  for (Entry& entry : entries) {
    if (auto* one = std::get_if<Asked>(&entry)) {
      asked.push_back(one);
      jobs.push_back(one->spec);
    }
  }
  if (jobs.empty()) return {};
  LF_TRY(Client client, Connect(settings));
  LF_TRY(const BatchId batch, client.Submit(jobs));
  WaitingNotice notice(client);
  auto followed = client.Follow(batch, [&](const wire::OutcomePage& page) {
    if (const std::string waits = notice.OnPage(page); !waits.empty()) {
      fmt::print(stderr, "{}\n", waits);
    }
    for (const Outcome& outcome : page.outcomes) {
      if (outcome.job.index < asked.size()) asked[outcome.job.index]->outcome = outcome;
    }
  });
  if (followed) return {};
  followed.error().message += fmt::format(
      "\nbatch {} goes on; `loopfleet batch wait {} --jsonl` comes back to it, `loopfleet batch "
      "cancel {}` ends it",
      batch, batch, batch);
  return std::unexpected(std::move(followed).error());
}

bool PrintForPeople(const Entry& entry) {
  if (const auto* rejected = std::get_if<RejectedJob>(&entry)) {
    fmt::print(stderr, "loopfleet: {}\n", FailureText(rejected->failure));
    return false;
  }
  const Asked& asked = std::get<Asked>(entry);
  if (!asked.outcome->evaluation.ok()) {
    fmt::print(stderr, "{}\n{}loopfleet: job {}: {}\n", SourceText(asked.spec.source),
               TreeOf(asked.spec), asked.outcome->job,
               FailureText(asked.outcome->evaluation.failure()));
    return false;
  }
  fmt::print("{}", AnswerText(asked.spec, *asked.outcome));
  return true;
}

bool PrintJson(const std::vector<Entry>& entries) {
  Json array = Json::array();
  bool all_ok = true;
  for (const Entry& entry : entries) {
    if (const auto* rejected = std::get_if<RejectedJob>(&entry)) {
      array.push_back(OutcomeJson(*rejected));
      all_ok = false;
    } else {
      const Outcome& outcome = *std::get<Asked>(entry).outcome;
      array.push_back(OutcomeJson(outcome));
      all_ok = all_ok && outcome.evaluation.ok();
    }
  }
  fmt::print("{}\n", Dump(array));
  return all_ok;
}

// What --refine asks for, one after the other: a figure as soon as there is one, then better ones.
struct Refinement {
  double budget_ms = 0;
  double precision = 0;
};
constexpr Refinement kRefinements[] = {{.budget_ms = 2}, {.precision = 0.01}, {.precision = 0.003}};

bool IsAsGoodAs(const Asked& asked, double precision) {
  return asked.outcome && asked.outcome->evaluation.is_timed() && precision > 0 &&
         asked.outcome->evaluation.measurement().spread <= precision;
}

// Each figure is printed as soon as its step is over: for people in full, then in a line each; as
// JSON an object a line. A failure is not tried again.
Answer<bool> Refine(const ClientSettings& settings, const EvalFlags& flags,
                    std::vector<Entry> entries) {
  bool all_ok = true;
  for (const Refinement& step : kRefinements) {
    std::vector<Entry> due;
    std::vector<Entry> next;
    for (Entry& entry : entries) {
      auto* asked = std::get_if<Asked>(&entry);
      if (asked != nullptr && IsAsGoodAs(*asked, step.precision)) {
        next.push_back(std::move(entry));
        continue;
      }
      if (asked != nullptr && TaskOf(asked->spec).is_timed) {
        asked->spec.budget_ms = step.budget_ms;
        asked->spec.precision = step.precision;
      }
      due.push_back(std::move(entry));
    }
    LF_TRY_VOID(Ask(settings, due));
    for (Entry& entry : due) {
      const auto* asked = std::get_if<Asked>(&entry);
      const bool is_ok = asked != nullptr && asked->outcome->evaluation.ok();
      if (flags.json) {
        fmt::print("{}\n", Dump(asked != nullptr ? OutcomeJson(*asked->outcome)
                                                 : OutcomeJson(std::get<RejectedJob>(entry))));
      } else if (is_ok && step.precision > 0) {
        fmt::print("{}", FigureText(*asked->outcome));
      } else {
        PrintForPeople(entry);
      }
      all_ok = all_ok && is_ok;
      if (is_ok) next.push_back(std::move(entry));
    }
    std::fflush(stdout);
    entries = std::move(next);
  }
  return all_ok;
}

int RunEval(EvalFlags flags, const CommandRun& run) {
  if (!flags.kind.empty() && flags.benchmarks.empty() && flags.ir_file.empty()) {
    const TaskInfo& task = TaskOf(*ValueNamed<TaskKind>(flags.kind));
    flags.benchmarks.emplace_back(task.example);
    const bool is_profile = task.example_profile != ProfileLevel::kNone;
    if (is_profile && !flags.fields.contains("profile")) {
      flags.fields["profile"] = EnumName(task.example_profile);
    }
  }
  if (flags.benchmarks.empty() == flags.ir_file.empty()) {
    fmt::print(stderr, "loopfleet: give either a BENCHMARK or --ir FILE, and not both\n");
    return kExitUsage;
  }
  auto entries = MakeEntries(flags);
  if (!entries) {
    fmt::print(stderr, "loopfleet: {}\n", entries.error().message);
    return kExitUsage;
  }
  if (flags.refine) {
    const auto all_ok = Refine(run.settings, flags, *std::move(entries));
    if (!all_ok) return Report(all_ok.error());
    return *all_ok ? kExitOk : kExitFailed;
  }
  if (auto asked = Ask(run.settings, *entries); !asked) return Report(asked.error());
  if (flags.json) return PrintJson(*entries) ? kExitOk : kExitFailed;
  bool all_ok = true;
  for (const Entry& entry : *entries) {
    if (&entry != &entries->front()) fmt::print("\n");
    all_ok = PrintForPeople(entry) && all_ok;
  }
  return all_ok ? kExitOk : kExitFailed;
}

}  // namespace

void AddEvalCommand(CommandLine& line) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App& app = line.AddCommand(
      line.root(),
      {.name = "eval",
       .description = "Measure one benchmark after some actions or passes, and print what came out",
       .examples = "loopfleet eval benchmark://mm-v0/mm64_64_64 --actions swap_down,split_16\n"
                   "loopfleet eval benchmark://loop_tool-cpu-v0/1024 --json\n"
                   "loopfleet eval --ir program.txt --actions down,down,vectorize --fresh\n"
                   "loopfleet eval generator://csmith-v0/7 --passes mem2reg,gvn "
                   "--observe IrInstructionCount,IrInstructionCountOz\n"
                   "loopfleet eval --kind probe --labels host=node7"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunEval(*flags, run); });
  app.add_option("benchmark", flags->benchmarks, "benchmark URIs: see `loopfleet benchmark list`")
      ->type_name("BENCHMARK");
  app.add_option("--actions", flags->action_lists,
                 "actions by name, with commas; several times: one job for each")
      ->type_name("A,B,C")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--ir", flags->ir_file, "a program as IR text instead of a benchmark ('-': stdin)")
      ->type_name("FILE");
  const auto kinds = AllNames<TaskKind>();
  app.add_option(
         "--kind", flags->kind,
         "without a benchmark: run the usual one of this kind (probe: the peaks of a worker)")
      ->check(CLI::IsMember(std::vector<std::string>(kinds.begin(), kinds.end())))
      ->excludes("benchmark")
      ->excludes("--ir");
  AddJobOptions(app, flags->fields);
  app.add_flag("--refine", flags->refine,
               "print a first figure after 2 ms of timing, then better ones, within 1 % and within "
               "0.3 %; with --json one object a line")
      ->excludes("--precision")
      ->excludes("--budget-ms");
  app.add_flag("--json", flags->json, "print one JSON array, an outcome for each job");
}

}  // namespace loopfleet::client
