// How reliable figures are: what `loopfleet doctor --measure` finds, in quiet and beside a busy
// neighbour (share of each grade, how far figures of new workers lie apart, how many intervals hold
// another figure, alone against in a batch, latency, peak); then the same schedules repeatedly over
// fresh worker processes and buffers (A/A), with and without a busy neighbour on the other cores,
// first against warm, and two independent passes over 500 schedules. All through a real cluster.
//
//   bench_timing [--minutes M] [--raw FILE]
//   bench_timing --round quiet|neighbour|ranking --raw FILE --database DB
//   bench_timing --report --raw FILE
//
// --minutes applies only to the A/A experiment (default 0.5). --raw writes every result as a JSON
// line, for bench/plot_timing.py. --round does one pass and appends its results to the file, so
// that rounds can be spread over any time, on a machine with other work between them; --report then
// prints the figures of the file. (The database keeps the reference clock.)

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "bench/corpus/corpus.h"
#include "bench/rigs/result_line.h"
#include "client/cli/text/host_trial_text.h"
#include "client/client.h"
#include "client/host_trial.h"
#include "client/local_cluster.h"
#include "client/scratch_dir.h"
#include "common/base/quantile.h"

namespace loopfleet::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr std::size_t kRepeated = 12;    // schedules of the A/A experiment: 4 of each size
constexpr std::size_t kSchedules = 500;  // schedules of the ranking experiment
// Results at least this far apart are also compared separately: only they show a slow drift.
constexpr double kFarApartSeconds = 30 * 60;

enum class Round { kQuiet, kNeighbour, kRanking };

struct Options {
  double minutes = 0.5;
  std::string raw;
  std::optional<Round> round;
  bool report = false;
  std::string database;
};

struct Figure {
  std::size_t schedule = 0;
  double pass = 0;  // start of the pass, in seconds since 1970
  double elapsed_ns = 0;
  double wall_ns = 0;  // before scaling to the reference clock
  double first_to_rest = 0;
  double accepted = 0;  // share of its samples
  double gflops = 0;
  Grade grade = Grade::kC;
};

// Keeps the other cores busy, alternating between arithmetic and streams through memory.
class Neighbour {
 public:
  Neighbour() : thread_([this] { Run(); }) {}
  ~Neighbour() {
    stop_ = true;
    thread_.join();
  }

 private:
  void Run() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(0, &cores);  // workers time on the last core
    ::sched_setaffinity(0, sizeof cores, &cores);
    std::vector<float> memory(std::size_t{16} << 20, 1.0F);
    [[maybe_unused]] volatile float sink = 0;  // keeps the sums from being optimised away
    while (!stop_) {
      const auto until = Clock::now() + std::chrono::milliseconds(20);
      float x = 1;
      while (Clock::now() < until) {
        for (int i = 0; i < 10'000; ++i) x = x * 0.999F + 0.001F;
      }
      float sum = 0;
      for (float& value : memory) sum += value += 1.0F;
      done_ = x + sum;
    }
  }
  std::atomic<bool> stop_{false};
  std::atomic<float> done_{0};  // keeps the work from being optimised away
  std::thread thread_;
};

Figure FigureOf(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  const Measurement& m = evaluation.measurement();
  Figure figure{.schedule = outcome.job.index,
                .elapsed_ns = m.elapsed_ns,
                .wall_ns = m.elapsed_ns,
                .accepted = static_cast<double>(AcceptedSamples(m)) /
                            static_cast<double>(m.samples_ns.size()),
                .gflops = GflopPerSecond(evaluation.flop_count, m),
                .grade = m.grade};
  const double reference = evaluation.conditions->hardware.clock_mhz;
  if (ClockMhz(m) > 0 && reference > 0) figure.wall_ns *= reference / ClockMhz(m);
  figure.first_to_rest =
      m.samples_ns.front() / Quantile({m.samples_ns.begin() + 1, m.samples_ns.end()}, 0.5);
  return figure;
}

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {}

  Status Run() {
    if (options_.report) {
      LF_TRY_VOID(ReadRaw());
      return Report();
    }
    if (!options_.raw.empty()) {
      raw_.open(options_.raw, options_.round ? std::ios::app : std::ios::trunc);
    }
    LF_TRY(std::vector<JobSpec> corpus,
           ReadCorpus(LOOPFLEET_SOURCE_DIR "/bench/corpus/matmul_walks.jsonl"));
    for (JobSpec& job : corpus) job.freshness = Freshness::kMeasureAgain;
    std::vector<JobSpec> few;
    for (std::size_t i = 0; i < kRepeated; ++i) {
      few.push_back(corpus[i * corpus.size() / kRepeated]);
    }
    const std::vector<JobSpec> many(corpus.begin(), corpus.begin() + kSchedules);
    LF_TRY(const auto scratch, client::ScratchDir::Create());
    // One database for all passes keeps the reference clock.
    database_ = options_.database.empty() ? scratch.path() / "timing.db"
                                          : std::filesystem::path(options_.database);
    if (options_.round) return RunRound(*options_.round, few, many);
    LF_TRY_VOID(RunTrial("quiet"));
    {
      const Neighbour neighbour;
      LF_TRY_VOID(RunTrial("beside a busy neighbour on another core"));
    }
    const auto until = Clock::now() + std::chrono::duration<double>(options_.minutes * 60);
    do {
      LF_TRY_VOID(RunRound(Round::kQuiet, few, many));
    } while (Clock::now() < until);
    constexpr int kNeighbourPasses = 6;
    for (int i = 0; i < kNeighbourPasses; ++i) {
      LF_TRY_VOID(RunRound(Round::kNeighbour, few, many));
    }
    LF_TRY_VOID(RunRound(Round::kRanking, few, many));
    LF_TRY_VOID(RunRound(Round::kRanking, few, many));
    return Report();
  }

 private:
  using BySchedule = std::map<std::size_t, std::vector<Figure>>;

  Status RunRound(Round round, const std::vector<JobSpec>& few, const std::vector<JobSpec>& many) {
    switch (round) {
      case Round::kQuiet: return Pass("quiet", few);
      case Round::kNeighbour: {
        const Neighbour neighbour;
        return Pass("neighbour", few);
      }
      case Round::kRanking: return Pass("ranking", many);
    }
    return {};
  }

  // What `loopfleet doctor --measure` says of this host.
  Status RunTrial(const std::string& circumstances) {
    LF_TRY(const client::HostTrial trial, client::RunTrial({.programs = client::OwnDirectory()}));
    const client::TrialReport report = client::Assess(trial);
    Print({.bench = "timing",
           .name = "figures of new workers, " + circumstances,
           .value = report.good.p95 * 100,
           .unit = "% that 95 of 100 pairs of figures of grade A or B stay within",
           .peer = "what grade A is to mean",
           .peer_value = kGradeASpread * 100,
           .details = client::TrialJson(report)});
    return {};
  }

  // Runs each job once, with fresh processes. Counts failures.
  Status Pass(const std::string& experiment, const std::vector<JobSpec>& jobs) {
    LF_TRY(auto cluster, client::LocalCluster::Start(
                             {.programs = client::OwnDirectory(), .database = database_}));
    auto client = client::Client::Connect({.address = cluster.address(), .program = "bench"});
    if (!client) return Fail(client.error().kind, client.error().message);
    const double pass = SecondsNow();
    const auto done = client->Evaluate(jobs, [&](const Outcome& outcome) {
      std::optional<Figure> figure;
      if (outcome.evaluation.ok()) figure = FigureOf(outcome);
      Take({.experiment = experiment, .pass = pass, .figure = figure});
    });
    if (!done) return Fail(done.error().kind, done.error().message);
    return {};
  }

  struct Row {
    std::string experiment;
    double pass = 0;               // start of the pass, in seconds since 1970
    std::optional<Figure> figure;  // nullopt: the evaluation failed
  };

  void Take(const Row& row) {
    rows_.push_back(row);
    if (!raw_.is_open()) return;
    Json line = {{"experiment", row.experiment}, {"pass_s", row.pass}};
    if (row.figure) {
      const Figure& figure = *row.figure;
      line.update(Json{{"schedule", figure.schedule},
                       {"elapsed_ns", figure.elapsed_ns},
                       {"wall_ns", figure.wall_ns},
                       {"first_to_rest", figure.first_to_rest},
                       {"accepted", figure.accepted},
                       {"gflops", figure.gflops},
                       {"grade", EnumName(figure.grade)}});
    }
    raw_ << line.dump() << '\n' << std::flush;
  }

  Status ReadRaw() {
    std::ifstream file(options_.raw);
    for (std::string text; std::getline(file, text);) {
      const Json line = Json::parse(text, nullptr, false);
      if (line.is_discarded()) return Fail(ErrorKind::kInvalid, "not JSON: " + text);
      Row row{.experiment = line.value("experiment", ""), .pass = line.value("pass_s", 0.0)};
      if (line.contains("elapsed_ns")) {
        const auto grade = ValueNamed<Grade>(line.value("grade", "C"));
        row.figure = Figure{.schedule = line.value("schedule", std::size_t{0}),
                            .elapsed_ns = line.value("elapsed_ns", 0.0),
                            .wall_ns = line.value("wall_ns", 0.0),
                            .first_to_rest = line.value("first_to_rest", 0.0),
                            .accepted = line.value("accepted", 0.0),
                            .gflops = line.value("gflops", 0.0),
                            .grade = grade.value_or(Grade::kC)};
      }
      rows_.push_back(row);
    }
    if (rows_.empty()) return Fail(ErrorKind::kNotFound, "nothing in " + options_.raw);
    return {};
  }

  BySchedule FiguresOf(const std::string& experiment) const {
    BySchedule figures;
    for (const Row& row : rows_) {
      if (row.experiment != experiment || !row.figure) continue;
      figures[row.figure->schedule].push_back(*row.figure);
      figures[row.figure->schedule].back().pass = row.pass;
    }
    return figures;
  }
  // The duration of the experiment and the number of failed evaluations.
  Json Facts(const std::string& experiment) const {
    double first = 0;
    double last = 0;
    std::set<double> passes;
    int failed = 0;
    for (const Row& row : rows_) {
      if (row.experiment != experiment) continue;
      first = passes.empty() ? row.pass : std::min(first, row.pass);
      last = std::max(last, row.pass);
      passes.insert(row.pass);
      failed += row.figure ? 0 : 1;
    }
    return {{"passes", passes.size()}, {"hours", (last - first) / 3600}, {"failed", failed}};
  }

  // The relative differences between any two comparable results of one schedule.
  template <class Use, class Value>
  static std::vector<double> Disagreements(const BySchedule& figures, const Use& use,
                                           const Value& value) {
    std::vector<double> found;
    for (const auto& [schedule, all] : figures) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          if (!use(all[i], all[j])) continue;
          const double a = value(all[i]);
          const double b = value(all[j]);
          found.push_back(std::abs(a - b) / std::min(a, b));
        }
      }
    }
    return found;
  }

  static double GradeAShare(const BySchedule& figures) {
    double grade_a = 0;
    double total = 0;
    for (const auto& [schedule, all] : figures) {
      for (const Figure& figure : all) {
        grade_a += figure.grade == Grade::kA ? 1 : 0;
        ++total;
      }
    }
    return total == 0 ? std::nan("") : grade_a / total;
  }

  // The share of accepted repetitions: the mean over results.
  static double AcceptedShare(const BySchedule& figures) {
    double accepted = 0;
    double total = 0;
    for (const auto& [schedule, all] : figures) {
      for (const Figure& figure : all) {
        accepted += figure.accepted;
        ++total;
      }
    }
    return total == 0 ? std::nan("") : accepted / total;
  }

  static Json Percentiles(const std::vector<double>& disagreements) {
    const auto percent = [&](double share) { return Quantile(disagreements, share) * 100; };
    return {{"p50", percent(0.5)},
            {"p90", percent(0.9)},
            {"p95", percent(0.95)},
            {"max", percent(1)},
            {"pairs", disagreements.size()}};
  }

  void PrintDisagreement(const std::string& name, const std::string& experiment) {
    const BySchedule figures = FiguresOf(experiment);
    const auto both_a = [](const Figure& a, const Figure& b) {
      return a.grade == Grade::kA && b.grade == Grade::kA;
    };
    const auto both_a_far_apart = [&](const Figure& a, const Figure& b) {
      return both_a(a, b) && std::abs(a.pass - b.pass) >= kFarApartSeconds;
    };
    const auto any = [](const Figure&, const Figure&) { return true; };
    const auto elapsed = [](const Figure& figure) { return figure.elapsed_ns; };
    const auto wall = [](const Figure& figure) { return figure.wall_ns; };
    const auto of_a = Disagreements(figures, both_a, elapsed);
    const auto on_the_wall = Disagreements(figures, any, wall);
    Print({.bench = "timing",
           .name = name,
           .value = Quantile(of_a, 0.5) * 100,
           .unit = "% median disagreement of two grade-A results",
           .peer = "wall-clock times of all grades",
           .peer_value = Quantile(on_the_wall, 0.5) * 100,
           .details = {{"grade_a_share", GradeAShare(figures)},
                       {"accepted_share_of_repetitions", AcceptedShare(figures)},
                       {"grade_a", Percentiles(of_a)},
                       {"grade_a_half_an_hour_apart",
                        Percentiles(Disagreements(figures, both_a_far_apart, elapsed))},
                       {"all_grades", Percentiles(Disagreements(figures, any, elapsed))},
                       {"wall", Percentiles(on_the_wall)},
                       {"facts", Facts(experiment)}}});
  }

  Status Report() {
    PrintDisagreement("A/A over fresh worker processes and buffers", "quiet");
    const BySchedule quiet = FiguresOf("quiet");
    std::vector<double> first;
    for (const auto& [schedule, all] : quiet) {
      for (const Figure& figure : all) first.push_back(figure.first_to_rest);
    }
    Print({.bench = "timing",
           .name = "the first sample to the median of those after it",
           .value = Quantile(first, 0.5),
           .unit = "ratio, median",
           .peer = "as warm as the rest",
           .peer_value = 1.0,
           .details = {{"p10", Quantile(first, 0.1)},
                       {"p90", Quantile(first, 0.9)},
                       {"measurements", first.size()}}});
    const BySchedule beside = FiguresOf("neighbour");
    if (!beside.empty()) ReportNeighbour(quiet, beside);
    ReportRanking();
    return {};
  }

  void ReportNeighbour(BySchedule quiet, const BySchedule& beside) {
    PrintDisagreement("A/A beside a busy neighbour on another core", "neighbour");
    // Compares grade A figures beside the neighbour with grade A figures in quiet.
    std::vector<double> off;
    for (const auto& [schedule, all] : beside) {
      std::vector<double> in_quiet;
      for (const Figure& figure : quiet[schedule]) {
        if (figure.grade == Grade::kA) in_quiet.push_back(figure.elapsed_ns);
      }
      if (in_quiet.empty()) continue;
      const double right = Quantile(in_quiet, 0.5);
      for (const Figure& figure : all) {
        if (figure.grade == Grade::kA) off.push_back(std::abs(figure.elapsed_ns / right - 1) * 100);
      }
    }
    Print({.bench = "timing",
           .name = "grade A beside the neighbour against the quiet median",
           .value = Quantile(off, 0.5),
           .unit = "% off, median",
           .peer = "grade A in quiet: share",
           .peer_value = GradeAShare(quiet),
           .details = {{"grade_a_share", GradeAShare(beside)},
                       {"p90", Quantile(off, 0.9)},
                       {"max", Quantile(off, 1)},
                       {"results", off.size()}}});
  }

  // The same schedule's GFLOP/s in two passes.
  using Pairs = std::vector<std::pair<double, double>>;

  static double KendallsTau(const Pairs& both) {
    double concordant = 0;
    double pairs = 0;
    for (std::size_t i = 0; i < both.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const double order = (both[i].first - both[j].first) * (both[i].second - both[j].second);
        concordant += order > 0 ? 1 : order < 0 ? -1 : 0;
        ++pairs;
      }
    }
    return pairs > 0 ? concordant / pairs : std::nan("");
  }

  // The share of one pass's best tenth that is also in the other's.
  static double TopDecileAgreement(const Pairs& both) {
    const std::size_t top = both.size() / 10;
    if (top == 0) return std::nan("");
    const auto threshold = [&](auto member) {
      std::vector<double> values;
      for (const auto& pair : both) values.push_back(pair.*member);
      std::ranges::sort(values, std::greater<>());
      return values[top - 1];
    };
    const double best_one = threshold(&Pairs::value_type::first);
    const double best_two = threshold(&Pairs::value_type::second);
    const auto in_both = std::ranges::count_if(
        both, [&](const auto& pair) { return pair.first >= best_one && pair.second >= best_two; });
    return static_cast<double>(in_both) / static_cast<double>(top);
  }

  // The first two passes over many schedules.
  void ReportRanking() {
    std::map<double, std::vector<Figure>> passes;
    for (const Row& row : rows_) {
      if (row.experiment == "ranking" && row.figure) passes[row.pass].push_back(*row.figure);
    }
    if (passes.size() < 2) return;
    std::map<std::size_t, Figure> again;
    for (const Figure& figure : std::next(passes.begin())->second) again[figure.schedule] = figure;
    Pairs all;
    Pairs good;  // of grade A or B in both passes
    for (const Figure& figure : passes.begin()->second) {
      if (!again.contains(figure.schedule)) continue;
      const Figure& other = again[figure.schedule];
      all.emplace_back(figure.gflops, other.gflops);
      if (std::max(figure.grade, other.grade) <= Grade::kB) good.push_back(all.back());
    }
    Print({.bench = "timing",
           .name = fmt::format("two passes over {} schedules of mm64 and mm128", all.size()),
           .value = KendallsTau(all),
           .unit = "Kendall's tau of GFLOP/s",
           .peer = "the same order",
           .peer_value = 1.0,
           .details = {{"top_decile_agreement", TopDecileAgreement(all)},
                       {"of_grade_a_or_b_in_both",
                        {{"schedules", good.size()},
                         {"kendalls_tau", KendallsTau(good)},
                         {"top_decile_agreement", TopDecileAgreement(good)}}},
                       {"facts", Facts("ranking")}}});
  }

  const Options options_;
  std::ofstream raw_;
  std::filesystem::path database_;
  std::vector<Row> rows_;
};

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  loopfleet::bench::Options options;
  CLI::App app("How far figures can be trusted", "bench_timing");
  app.add_option("--minutes", options.minutes, "of the A/A experiment")
      ->check(CLI::Range(0.0, 600.0));
  CLI::Option* const raw =
      app.add_option("--raw", options.raw, "file for every result, as JSON lines");
  const std::map<std::string, loopfleet::bench::Round> rounds = {
      {"quiet", loopfleet::bench::Round::kQuiet},
      {"neighbour", loopfleet::bench::Round::kNeighbour},
      {"ranking", loopfleet::bench::Round::kRanking}};
  app.add_option("--round", options.round, "one pass of this kind, added to --raw")
      ->transform(CLI::CheckedTransformer(rounds))
      ->needs(raw);
  app.add_flag("--report", options.report, "what the file of --raw says")->needs(raw);
  app.add_option("--database", options.database, "kept from round to round");
  CLI11_PARSE(app, argc, argv);
  if (const auto done = loopfleet::bench::Bench(options).Run(); !done) {
    fmt::print(stderr, "bench timing: {}\n", done.error().message);
    return 1;
  }
  return 0;
}
