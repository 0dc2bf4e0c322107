// `loopfleet audit`: measures a share of the stored results again on other hosts (of jobs of LLVM
// passes: runs them again), shows those that disagree, and flags them so that they answer no later
// job.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/audit.h"
#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/age.h"
#include "client/cli/text/outcome_text.h"
#include "client/cli/text/progress_bar.h"
#include "client/cli/text/table.h"
#include "client/outcome_json.h"
#include "common/base/clock.h"
#include "common/base/counted.h"
#include "common/base/number_in.h"
#include "common/base/random.h"
#include "common/looptree/actions/action.h"
#include "common/wire/bounds.h"

namespace loopfleet::client {
namespace {

struct AuditFlags {
  std::string share = "2%";
  std::string batch;
  std::string since = "24h";
  std::optional<std::uint64_t> seed;
  bool same_host = false;
  bool json = false;
};

// Parses "2%" or "2" to 0.02.
std::optional<double> ParseShare(std::string_view text) {
  if (text.ends_with('%')) text.remove_suffix(1);
  const auto percent = NumberIn<double>(text);
  if (!percent || !(*percent > 0 && *percent <= 100)) return std::nullopt;
  return *percent / 100;
}

// How a case ended.
enum class Came : std::uint8_t { kNoSecondHost, kNotMeasured, kAgrees, kDisagrees };

struct Audited {
  AuditCase what;
  Came came = Came::kNoSecondHost;
  std::vector<JobId> flagged;
};

struct AuditReport {
  std::uint64_t seed = 0;
  double share = 0;
  std::uint64_t jobs = 0;        // in the batches that are sampled
  std::uint64_t looked_at = 0;   // drawn; those without a result of their own are not audited
  std::vector<BatchId> batches;  // batches of new measurements
  std::vector<Audited> audited;

  std::size_t Count(Came came) const {
    return static_cast<std::size_t>(std::ranges::count(audited, came, &Audited::came));
  }
};

class Auditor {
 public:
  Auditor(Client& client, const AuditFlags& flags, double share, Keys keys)
      : client_(client),
        same_host_(flags.same_host ? SameHost::kAllowed : SameHost::kNotAllowed),
        keys_(keys),
        report_{.seed = flags.seed.value_or(OsRandom64() >> 11), .share = share},  // exact in JSON
        random_(report_.seed) {}

  Answer<void> Choose(const std::vector<JobSampler::Batch>& batches);
  Answer<void> MeasureAgain();
  Answer<void> Flag();
  const AuditReport& report() const { return report_; }

 private:
  // Measures each case on one more witness; returns the cases that have its opinion.
  Answer<std::vector<Audited*>> Ask(const std::vector<Audited*>& cases);

  Client& client_;
  const SameHost same_host_;
  const Keys keys_;
  AuditReport report_;
  SplitMix64 random_;
};

bool IsUnreadable(const CallError& error) {
  return error.refusal && (error.refusal->code == FailureCode::kNotFound ||
                           error.refusal->code == FailureCode::kStorageCorrupt);
}

Answer<void> Auditor::Choose(const std::vector<JobSampler::Batch>& batches) {
  // If most jobs were answered from the store, the search for a first measured one stops here.
  constexpr std::uint64_t kMostLooksForOne = 10'000;
  JobSampler sampler(batches, report_.seed);
  report_.jobs = sampler.size();
  const auto wanted =
      static_cast<std::uint64_t>(std::ceil(report_.share * static_cast<double>(report_.jobs)));
  ProgressBar bar;
  while (report_.looked_at < wanted ||
         (report_.audited.empty() && report_.looked_at < kMostLooksForOne)) {
    const auto job = sampler.Next();
    if (!job) break;
    ++report_.looked_at;
    const auto info = client_.ShowJob(*job);
    if (!info && IsUnreadable(info.error())) continue;
    if (!info) return std::unexpected(info.error());
    if (auto audit = CaseOf(*info, keys_)) report_.audited.push_back({.what = *std::move(audit)});
    bar.Show({.done = static_cast<std::uint32_t>(report_.looked_at),
              .total = static_cast<std::uint32_t>(std::max(wanted, report_.looked_at))});
  }
  return {};
}

Answer<std::vector<Audited*>> Auditor::Ask(const std::vector<Audited*>& cases) {
  LF_TRY(const wire::WorkerList workers, client_.ListWorkers());
  std::vector<Audited*> asked;
  std::vector<JobSpec> jobs;
  for (Audited* audited : cases) {
    const auto* worker = NextWitness(audited->what, workers, same_host_, random_);
    if (worker == nullptr) continue;
    asked.push_back(audited);
    jobs.push_back(AuditJob(audited->what, *worker));
    if (audited->came == Came::kNoSecondHost) audited->came = Came::kNotMeasured;
  }
  std::vector<Audited*> answered;
  if (jobs.empty()) return answered;
  LF_TRY(const BatchId batch, client_.Submit(jobs));
  report_.batches.push_back(batch);
  ProgressBar bar;
  auto followed = client_.Follow(batch, [&](const wire::OutcomePage& page) {
    for (const Outcome& outcome : page.outcomes) {
      if (outcome.job.index >= asked.size()) continue;
      Audited* audited = asked[outcome.job.index];
      if (AddOpinion(audited->what, outcome, keys_)) answered.push_back(audited);
    }
    bar.Show(
        {.done = page.batch.finished, .failed = page.batch.failed, .total = page.batch.job_count});
  });
  if (followed) return answered;
  followed.error().message +=
      fmt::format("\nthe audit's measurements go on: `loopfleet batch cancel {}` ends them", batch);
  return std::unexpected(std::move(followed).error());
}

Answer<void> Auditor::MeasureAgain() {
  std::vector<Audited*> all;
  for (Audited& audited : report_.audited) all.push_back(&audited);
  LF_TRY(const auto answered, Ask(all));
  std::vector<Audited*> disputed;
  for (Audited* audited : answered) {
    const auto& opinions = audited->what.opinions;
    const bool agree = Agree(opinions[0], opinions[1]);
    audited->came = agree ? Came::kAgrees : Came::kDisagrees;
    if (!agree) disputed.push_back(audited);
  }
  LF_TRY_VOID(Ask(disputed));  // a third witness, if there is one, decides which is the outlier
  return {};
}

std::string FigureText(const Opinion& opinion, const std::vector<Opinion>& opinions) {
  if (opinion.failure) return std::string(InfoOf(opinion.failure->code).name);
  if (opinion.observed) {
    const std::string differences = DifferencesOf(opinion, opinions);
    return differences.empty() ? "observed" : differences;
  }
  return fmt::format("{:.4g} ns", opinion.elapsed_ns);
}

Answer<void> Auditor::Flag() {
  for (Audited& audited : report_.audited) {
    if (audited.came != Came::kDisagrees) continue;
    std::vector<std::string> said;
    for (const Opinion& opinion : audited.what.opinions) {
      said.push_back(
          fmt::format("{} {}", opinion.witness.name(), FigureText(opinion, audited.what.opinions)));
    }
    const std::vector<JobId> jobs = InDoubt(audited.what.opinions);
    LF_TRY_VOID(client_.FlagResults(
        jobs, fmt::format("an audit of job {}: {}", audited.what.opinions.front().job,
                          fmt::join(said, ", "))));
    audited.flagged = jobs;
  }
  return {};
}

// ---- output -------------------------------------------------------------------------------------

// Counts for one witness over all its cases.
struct Tally {
  std::size_t compared = 0;
  std::size_t agree = 0;
  std::size_t disagree = 0;
  std::size_t quicker = 0;  // the outlier of three, because it was faster
  std::size_t slower = 0;
  std::size_t other = 0;  // the outlier, by a failure or an observed value
  std::size_t no_second_host = 0;
};

std::map<std::string, Tally> TallyOf(const AuditReport& report) {
  std::map<std::string, Tally> tallies;
  for (const Audited& audited : report.audited) {
    const auto& opinions = audited.what.opinions;
    const auto odd = FindOutlier(opinions);
    for (std::size_t i = 0; i < opinions.size(); ++i) {
      Tally& tally = tallies[opinions[i].witness.name()];
      if (audited.came == Came::kNoSecondHost) ++tally.no_second_host;
      if (opinions.size() < 2) continue;
      ++tally.compared;
      // If there is an outlier, the two others agree.
      const bool agrees = odd ? odd->which != i : audited.came == Came::kAgrees;
      ++(agrees ? tally.agree : tally.disagree);
      if (!odd || agrees) continue;
      if (odd->kind == OddKind::kQuicker) ++tally.quicker;
      if (odd->kind == OddKind::kSlower) ++tally.slower;
      if (odd->kind == OddKind::kOther) ++tally.other;
    }
  }
  return tallies;
}

std::string SummaryText(const AuditReport& report) {
  std::string text =
      fmt::format("{} of {} looked at, {} with a result of their own: {} agree, {} disagree",
                  report.looked_at, Counted(report.jobs, "job", "jobs"), report.audited.size(),
                  report.Count(Came::kAgrees), report.Count(Came::kDisagrees));
  if (const std::size_t none = report.Count(Came::kNoSecondHost); none > 0) {
    text += fmt::format(", {} no second host of their hardware class and compiler",
                        Counted(none, "has", "have"));
  }
  if (const std::size_t none = report.Count(Came::kNotMeasured); none > 0) {
    text += fmt::format(", {} could not be measured again", none);
  }
  if (!report.batches.empty()) {
    text += fmt::format("; measured again in batch {}", fmt::join(report.batches, " and "));
  }
  return text + fmt::format("; --seed {} draws them again\n", report.seed);
}

void PrintText(const AuditReport& report) {
  fmt::print("{}", SummaryText(report));
  if (report.audited.empty()) return;
  Table witnesses({"WITNESS", "COMPARED", "AGREE", "DISAGREE", "ODD QUICKER", "ODD SLOWER",
                   "ODD OTHERWISE", "NO SECOND HOST"});
  for (const auto& [name, tally] : TallyOf(report)) {
    witnesses.Add({name, std::to_string(tally.compared), std::to_string(tally.agree),
                   std::to_string(tally.disagree), std::to_string(tally.quicker),
                   std::to_string(tally.slower), std::to_string(tally.other),
                   std::to_string(tally.no_second_host)});
  }
  fmt::print("\n{}", witnesses.Text());
  if (report.Count(Came::kDisagrees) == 0) return;
  Table rows({"JOB", "WORKER", "SAYS", "ODD", "FLAGGED", "BENCHMARK"});
  for (const Audited& audited : report.audited) {
    if (audited.came != Came::kDisagrees) continue;
    const auto& opinions = audited.what.opinions;
    const auto odd = FindOutlier(opinions);
    for (std::size_t i = 0; i < opinions.size(); ++i) {
      const bool is_flagged =
          std::ranges::find(audited.flagged, opinions[i].job) != audited.flagged.end();
      rows.Add({fmt::format("{}", opinions[i].job), opinions[i].worker,
                FigureText(opinions[i], opinions),
                !odd              ? "?"
                : odd->which == i ? "yes"
                                  : "",
                is_flagged ? "yes" : "", i == 0 ? SourceText(audited.what.spec.source) : ""});
    }
  }
  fmt::print("\n{}", rows.Text());
}

Json OpinionJson(const Opinion& opinion) {
  const bool ok = !opinion.failure && !opinion.observed;
  return Json{{"job", fmt::format("{}", opinion.job)},
              {"witness", opinion.witness.name()},
              {"worker", opinion.worker},
              {"host", opinion.witness.host},
              {"elapsed_ns", ok ? Json(opinion.elapsed_ns) : Json(nullptr)},
              {"low_ns", ok ? Json(opinion.low_ns) : Json(nullptr)},
              {"high_ns", ok ? Json(opinion.high_ns) : Json(nullptr)},
              {"observed", opinion.observed ? ObservedJson(*opinion.observed) : Json(nullptr)},
              {"error", opinion.failure ? FailureJson(*opinion.failure) : Json(nullptr)}};
}

Json DisagreementJson(const Audited& audited) {
  const auto odd = FindOutlier(audited.what.opinions);
  Json json{{"benchmark", SourceText(audited.what.spec.source)}};
  json["actions"] = looptree::ActionNames(audited.what.spec.actions);
  json["passes"] = audited.what.spec.passes;
  json["observe"] = audited.what.spec.observe;
  json["says"] = Json::array();
  for (const Opinion& opinion : audited.what.opinions) json["says"].push_back(OpinionJson(opinion));
  json["odd"] =
      odd ? Json(fmt::format("{}", audited.what.opinions[odd->which].job)) : Json(nullptr);
  json["flagged"] = Json::array();
  for (const JobId job : audited.flagged) json["flagged"].push_back(fmt::format("{}", job));
  return json;
}

void PrintJson(const AuditReport& report) {
  Json json{{"seed", report.seed},
            {"share", report.share},
            {"jobs", report.jobs},
            {"looked_at", report.looked_at},
            {"audited", report.audited.size()},
            {"agree", report.Count(Came::kAgrees)},
            {"disagree", report.Count(Came::kDisagrees)},
            {"no_second_host", report.Count(Came::kNoSecondHost)},
            {"not_measured", report.Count(Came::kNotMeasured)}};
  json["batches"] = Json::array();
  for (const BatchId batch : report.batches) json["batches"].push_back(batch.value);
  json["witnesses"] = Json::array();
  for (const auto& [name, tally] : TallyOf(report)) {
    json["witnesses"].push_back({{"witness", name},
                                 {"compared", tally.compared},
                                 {"agree", tally.agree},
                                 {"disagree", tally.disagree},
                                 {"odd_quicker", tally.quicker},
                                 {"odd_slower", tally.slower},
                                 {"odd_otherwise", tally.other},
                                 {"no_second_host", tally.no_second_host}});
  }
  json["disagreements"] = Json::array();
  for (const Audited& audited : report.audited) {
    if (audited.came == Came::kDisagrees)
      json["disagreements"].push_back(DisagreementJson(audited));
  }
  fmt::print("{}\n", Dump(json));
}

// ---- the command --------------------------------------------------------------------------------

Answer<std::vector<JobSampler::Batch>> FindBatches(Client& client, const AuditFlags& flags,
                                                   std::chrono::seconds since) {
  std::vector<JobSampler::Batch> batches;
  if (!flags.batch.empty()) {
    LF_TRY(const BatchId id, FindBatch(client, flags.batch));
    LF_TRY(const auto info, client.ShowBatch(id));
    batches.push_back({.batch = id, .job_count = info.job_count});
    return batches;
  }
  const WallTime from = SystemClock().WallNow() - since;
  LF_TRY(const auto list, client.ListBatches(wire::kMaxBatchesPerList));
  bool is_whole = list.batches.size() < wire::kMaxBatchesPerList;
  for (const wire::BatchInfo& info : list.batches) {
    if (info.submitted_at >= from) {
      batches.push_back({.batch = info.batch, .job_count = info.job_count});
    } else if (info.state != wire::BatchState::kOpen && info.finished == info.job_count) {
      is_whole = true;  // of finished ones, the newest are listed
    }
  }
  if (!is_whole) {
    fmt::print(stderr, "loopfleet: only the newest {} batches are chosen from\n", batches.size());
  }
  return batches;
}

int RunAudit(const AuditFlags& flags, const CommandRun& run) {
  const auto share = ParseShare(flags.share);
  if (!share) {
    fmt::print(stderr, "loopfleet: --share '{}': give a percentage above 0, for example 2%\n",
               flags.share);
    return kExitUsage;
  }
  const auto since = ParseAge(flags.since);
  if (!since) {
    fmt::print(stderr, "loopfleet: --since: {}\n", since.error().message);
    return kExitUsage;
  }
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto batches = FindBatches(*client, flags, *since);
  if (!batches) return Report(batches.error());
  Auditor auditor(*client, flags, *share, run.settings.keys ? Keys::kInUse : Keys::kNone);
  const auto audit = [&]() -> Answer<void> {
    LF_TRY_VOID(auditor.Choose(*batches));
    LF_TRY_VOID(auditor.MeasureAgain());
    return {};
  };
  if (const auto done = audit(); !done) return Report(done.error());
  // Print the disagreements even if flagging failed.
  const auto flagged = auditor.Flag();
  flags.json ? PrintJson(auditor.report()) : PrintText(auditor.report());
  if (!flagged) {
    fmt::print(stderr,
               "loopfleet: not all of what is in doubt could be flagged (an admin's key is "
               "needed for it)\n");
    return Report(flagged.error());
  }
  return auditor.report().Count(Came::kDisagrees) == 0 ? kExitOk : kExitFailed;
}

}  // namespace

void AddAuditCommand(CommandLine& line) {
  const auto flags = std::make_shared<AuditFlags>();
  CLI::App& command = line.AddCommand(
      line.root(),
      {.name = "audit",
       .description = "Measure stored results again on other hosts; show and flag what disagrees",
       .examples = "loopfleet audit\n"
                   "loopfleet audit --share 10% --since 7d\n"
                   "loopfleet audit --batch 12 --share 100% --json"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunAudit(*flags, run); });
  command.add_option("--share", flags->share, "of the jobs chosen from, at least one result")
      ->type_name("PERCENT")
      ->capture_default_str();
  CLI::Option* const batch =
      command.add_option("--batch", flags->batch, "only jobs of this batch, or of the 'last' one")
          ->type_name("BATCH");
  command
      .add_option("--since", flags->since, "only jobs of batches no older than this: 90m, 24h, 7d")
      ->type_name("AGE")
      ->capture_default_str()
      ->excludes(batch);
  command.add_option("--seed", flags->seed, "draw the same jobs again (default: at random)");
  command.add_flag("--same-host", flags->same_host,
                   "where there is no second host, let the same one measure again");
  command.add_flag("--json", flags->json, "print one JSON value");
}

}  // namespace loopfleet::client
