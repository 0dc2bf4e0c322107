// How far figures can be trusted: the same schedules again and again over fresh worker processes
// and buffers (A/A), with and without a busy neighbour on the other cores, first against warm, and
// two independent passes over 500 schedules. Everything goes through a real cluster.
//
//   bench_timing [--minutes M] [--raw FILE]
//
// --minutes is for the A/A experiment alone (default 0.5; the record is of 30). --raw keeps every
// result as a JSON line, for bench/plot_timing.py.

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
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "bench/corpus.h"
#include "bench/result_line.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "client/scratch_dir.h"

namespace loopfleet::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr std::size_t kRepeated = 12;    // schedules of the A/A experiment: 4 of each size
constexpr std::size_t kSchedules = 500;  // of the ranking experiment

struct Options {
  double minutes = 0.5;
  std::string raw;
};

struct Figure {
  std::size_t schedule = 0;
  double elapsed_ns = 0;
  double wall_ns = 0;  // before it was stated at the reference clock
  double first_to_rest = 0;
  double accepted = 0;  // share of its samples
  double gflops = 0;
  Grade grade = Grade::kC;
};

double AtShare(std::vector<double> values, double share) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// The other cores are kept busy with arithmetic and with streams through memory, in turn.
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
    [[maybe_unused]] volatile float sink = 0;  // so that the sums are made
    while (!stop_) {
      const auto until = Clock::now() + std::chrono::milliseconds(20);
      float x = 1;
      while (Clock::now() < until) {
        for (int i = 0; i < 10'000; ++i) x = x * 0.999F + 0.001F;
      }
      float sum = 0;
      for (float& value : memory) sum += value += 1.0F;
      sink = x + sum;
    }
  }
  std::atomic<bool> stop_{false};
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
      m.samples_ns.front() / AtShare({m.samples_ns.begin() + 1, m.samples_ns.end()}, 0.5);
  return figure;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), begun_at_(Clock::now()) {
    if (!options.raw.empty()) raw_.open(options.raw);
  }

  // Each of the jobs once, by fresh processes; failures are counted.
  Result<std::vector<Figure>> Pass(const std::string& experiment,
                                   const std::vector<JobSpec>& jobs) {
    LF_TRY(auto cluster, client::LocalCluster::Start(
                             {.programs = client::OwnDirectory(), .database = database_}));
    auto client = client::Client::Connect({.address = cluster.address(), .program = "bench"});
    if (!client) return Fail(client.error().kind, client.error().message);
    std::vector<Figure> figures;
    const auto done = client->Evaluate(jobs, [&](const Outcome& outcome) {
      if (!outcome.evaluation.ok()) {
        ++failed_;
        return;
      }
      figures.push_back(FigureOf(outcome));
      Keep(experiment, figures.back());
    });
    if (!done) return Fail(done.error().kind, done.error().message);
    return figures;
  }

  Status Run() {
    LF_TRY(std::vector<JobSpec> corpus,
           ReadCorpus(LOOPFLEET_SOURCE_DIR "/bench/corpus/matmul_walks.jsonl"));
    for (JobSpec& job : corpus) job.freshness = Freshness::kMeasureAnew;
    std::vector<JobSpec> few;
    for (std::size_t i = 0; i < kRepeated; ++i) {
      few.push_back(corpus[i * corpus.size() / kRepeated]);
    }
    LF_TRY(const auto scratch, client::ScratchDir::Create());
    database_ = scratch.path() / "timing.db";  // one for all: the reference clock stays
    LF_TRY_VOID(RunAgainstItself(few));
    LF_TRY_VOID(RunBesideNeighbour(few));
    return RunRanking({corpus.begin(), corpus.begin() + kSchedules});
  }

 private:
  using BySchedule = std::map<std::size_t, std::vector<Figure>>;

  void Keep(const std::string& experiment, const Figure& figure) {
    if (!raw_.is_open()) return;
    raw_ << Json{{"experiment", experiment},
                 {"at_s", std::chrono::duration<double>(Clock::now() - begun_at_).count()},
                 {"schedule", figure.schedule},
                 {"elapsed_ns", figure.elapsed_ns},
                 {"wall_ns", figure.wall_ns},
                 {"accepted", figure.accepted},
                 {"gflops", figure.gflops},
                 {"grade", GradeName(figure.grade)}}
                .dump()
         << '\n'
         << std::flush;
  }

  // By how much any two results of one schedule disagree, relative.
  template <class Use, class Value>
  static std::vector<double> Disagreements(const BySchedule& figures, const Use& use,
                                           const Value& value) {
    std::vector<double> found;
    for (const auto& [schedule, all] : figures) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          if (!use(all[i]) || !use(all[j])) continue;
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

  void PrintDisagreement(const std::string& name, const BySchedule& figures) {
    const auto is_a = [](const Figure& figure) { return figure.grade == Grade::kA; };
    const auto any = [](const Figure&) { return true; };
    const auto elapsed = [](const Figure& figure) { return figure.elapsed_ns; };
    const auto wall = [](const Figure& figure) { return figure.wall_ns; };
    const auto of_a = Disagreements(figures, is_a, elapsed);
    const auto of_all = Disagreements(figures, any, elapsed);
    const auto on_the_wall = Disagreements(figures, any, wall);
    const auto percent = [](const std::vector<double>& values, double share) {
      return AtShare(values, share) * 100;
    };
    Print({.bench = "timing",
           .name = name,
           .value = percent(of_a, 0.5),
           .unit = "% median disagreement of two grade-A results",
           .peer = "wall-clock times of all grades",
           .peer_value = percent(on_the_wall, 0.5),
           .details = {
               {"grade_a_share", GradeAShare(figures)},
               {"grade_a",
                {{"p90", percent(of_a, 0.9)},
                 {"p95", percent(of_a, 0.95)},
                 {"max", percent(of_a, 1)},
                 {"pairs", of_a.size()}}},
               {"all_grades",
                {{"p50", percent(of_all, 0.5)},
                 {"p90", percent(of_all, 0.9)},
                 {"p95", percent(of_all, 0.95)},
                 {"pairs", of_all.size()}}},
               {"wall", {{"p90", percent(on_the_wall, 0.9)}, {"p95", percent(on_the_wall, 0.95)}}},
               {"failed", failed_},
               {"seconds", std::chrono::duration<double>(Clock::now() - begun_at_).count()}}});
  }

  Status RunAgainstItself(const std::vector<JobSpec>& jobs) {
    const auto until = Clock::now() + std::chrono::duration<double>(options_.minutes * 60);
    do {
      LF_TRY(const auto figures, Pass("quiet", jobs));
      for (const Figure& figure : figures) quiet_[figure.schedule].push_back(figure);
    } while (Clock::now() < until);
    PrintDisagreement("A/A over fresh worker processes and buffers", quiet_);
    std::vector<double> first;
    for (const auto& [schedule, all] : quiet_) {
      for (const Figure& figure : all) first.push_back(figure.first_to_rest);
    }
    Print({.bench = "timing",
           .name = "the first sample to the median of those after it",
           .value = AtShare(first, 0.5),
           .unit = "ratio, median",
           .peer = "as warm as the rest",
           .peer_value = 1.0,
           .details = {{"p10", AtShare(first, 0.1)},
                       {"p90", AtShare(first, 0.9)},
                       {"measurements", first.size()}}});
    return {};
  }

  Status RunBesideNeighbour(const std::vector<JobSpec>& jobs) {
    BySchedule figures;
    {
      const Neighbour neighbour;
      constexpr int kPasses = 6;
      for (int i = 0; i < kPasses; ++i) {
        LF_TRY(const auto pass, Pass("neighbour", jobs));
        for (const Figure& figure : pass) figures[figure.schedule].push_back(figure);
      }
    }
    PrintDisagreement("A/A beside a busy neighbour on another core", figures);
    // Does a figure beside the neighbour say what it says in quiet? Grade A of both.
    std::vector<double> off;
    for (const auto& [schedule, all] : figures) {
      std::vector<double> in_quiet;
      for (const Figure& figure : quiet_[schedule]) {
        if (figure.grade == Grade::kA) in_quiet.push_back(figure.elapsed_ns);
      }
      if (in_quiet.empty()) continue;
      const double right = AtShare(in_quiet, 0.5);
      for (const Figure& figure : all) {
        if (figure.grade == Grade::kA) off.push_back(std::abs(figure.elapsed_ns / right - 1) * 100);
      }
    }
    Print({.bench = "timing",
           .name = "grade A beside the neighbour against the quiet median",
           .value = AtShare(off, 0.5),
           .unit = "% off, median",
           .peer = "grade A in quiet: share",
           .peer_value = GradeAShare(quiet_),
           .details = {{"grade_a_share", GradeAShare(figures)},
                       {"p90", AtShare(off, 0.9)},
                       {"max", AtShare(off, 1)},
                       {"results", off.size()}}});
    return {};
  }

  Status RunRanking(const std::vector<JobSpec>& jobs) {
    LF_TRY(const auto one, Pass("first pass", jobs));
    LF_TRY(const auto two, Pass("second pass", jobs));
    std::map<std::size_t, double> again;
    for (const Figure& figure : two) again[figure.schedule] = figure.gflops;
    std::vector<std::pair<double, double>> both;
    for (const Figure& figure : one) {
      if (again.contains(figure.schedule)) {
        both.emplace_back(figure.gflops, again[figure.schedule]);
      }
    }
    double concordant = 0;
    double pairs = 0;
    for (std::size_t i = 0; i < both.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const double order = (both[i].first - both[j].first) * (both[i].second - both[j].second);
        concordant += order > 0 ? 1 : order < 0 ? -1 : 0;
        ++pairs;
      }
    }
    const std::size_t top = both.size() / 10;
    const auto threshold = [&](auto member) {
      std::vector<double> values;
      for (const auto& pair : both) values.push_back(pair.*member);
      std::ranges::sort(values, std::greater<>());
      return top == 0 ? 0 : values[top - 1];
    };
    const double best_one = threshold(&std::pair<double, double>::first);
    const double best_two = threshold(&std::pair<double, double>::second);
    double in_both = 0;
    for (const auto& [a, b] : both) in_both += a >= best_one && b >= best_two ? 1 : 0;
    Print({.bench = "timing",
           .name = fmt::format("two passes over {} schedules of mm64 and mm128", both.size()),
           .value = concordant / pairs,
           .unit = "Kendall's tau of GFLOP/s",
           .peer = "the same order",
           .peer_value = 1.0,
           .details = {{"top_decile_agreement", in_both / static_cast<double>(top)},
                       {"failed", failed_}}});
    return {};
  }

  const Options options_;
  const Clock::time_point begun_at_;
  std::ofstream raw_;
  std::filesystem::path database_;
  BySchedule quiet_;
  std::uint32_t failed_ = 0;
};

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  loopfleet::bench::Options options;
  CLI::App app("How far figures can be trusted", "bench_timing");
  app.add_option("--minutes", options.minutes, "of the A/A experiment")
      ->check(CLI::Range(0.0, 600.0));
  app.add_option("--raw", options.raw, "file for every result, as JSON lines");
  CLI11_PARSE(app, argc, argv);
  if (const auto done = loopfleet::bench::Bench(options).Run(); !done) {
    fmt::print(stderr, "bench timing: {}\n", done.error().message);
    return 1;
  }
  return 0;
}
