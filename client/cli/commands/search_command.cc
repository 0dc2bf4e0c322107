// `loopfleet search`: looks for quick schedules of loops, and for passes that make programs small.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/curve_svg.h"
#include "client/cli/text/outcome_text.h"
#include "client/cli/text/progress_bar.h"
#include "client/cli/text/search_text.h"
#include "client/job_line.h"
#include "client/search/cluster_evaluator.h"
#include "client/search/open_space.h"
#include "client/search/search.h"
#include "client/search/store_evaluator.h"
#include "client/search/strategy_table.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kMostInFlight = 10'000;

struct SearchFlags {
  std::vector<std::string> benchmarks;
  std::string strategy{kAuto};
  std::optional<double> seconds;
  std::optional<std::uint64_t> evaluations;
  std::uint64_t seed = 1;
  std::size_t in_flight = SearchLimits{}.in_flight;
  std::size_t confirm = 3;
  std::vector<std::string> labels;
  bool store_only = false;
  std::string database;
  bool json = false;
  std::string plot;
};

int Refuse(const std::string& message) {
  fmt::print(stderr, "loopfleet: {}\n", message);
  return kExitUsage;
}

// What the flags say about each other; "": they agree.
std::string Contradiction(const SearchFlags& flags) {
  if (flags.seconds.has_value() == flags.evaluations.has_value()) {
    return "give either --seconds or --evaluations, and not both: one of them ends the search";
  }
  if (flags.store_only == flags.database.empty()) {
    return "--store-only requires --db FILE, and --db requires --store-only";
  }
  return "";
}

Result<std::vector<Exploration>> MakeExplorations(SearchFlags& flags) {
  LF_TRY(const StrategyInfo* strategy, FindStrategy(flags.strategy));
  flags.strategy = strategy->name;  // reports say what "auto" stands for
  std::vector<Exploration> explorations;
  for (const std::string& benchmark : flags.benchmarks) {
    const looptree::BenchmarkUri source{FullUri(benchmark)};
    LF_TRY(const SharedSpace space, OpenSearchSpace(source));
    if (IsProgram(source) && strategy->is_for_loops_only) {
      return Fail(ErrorKind::kInvalid, fmt::format("strategy '{}' is for loops; '{}' is a program",
                                                   strategy->name, benchmark));
    }
    if (IsProgram(source) && (flags.store_only || !flags.plot.empty())) {
      return Fail(
          ErrorKind::kInvalid,
          fmt::format("--store-only and --plot are for loops; '{}' is a program", benchmark));
    }
    explorations.emplace_back(space, strategy->make(space, flags.seed));
  }
  return explorations;
}

// The winners of each benchmark and its untuned schedule, measured again in turns.
Answer<std::vector<Confirmed>> ConfirmAll(Client& client, const Search& search) {
  std::vector<Winner> winners;
  for (const Search::Lane& lane : search.lanes()) {
    std::vector<Winner> best = lane.winners.Sorted();
    if (lane.untuned) best.push_back(*lane.untuned);
    for (Winner& one : best) {
      if (std::ranges::find(winners, one.job, &Winner::job) == winners.end()) {
        winners.push_back(std::move(one));
      }
    }
  }
  LF_TRY(Confirmation confirmation, Confirm(client, std::move(winners), kConfirmingRepeats));
  return std::move(confirmation.winners);
}

bool WritePlot(const SearchFlags& flags, const Search& search, double seconds) {
  std::vector<NamedCurve> curves;
  for (const Search::Lane& lane : search.lanes()) {
    curves.push_back({.name = fmt::format("{}, {}", SourceText(lane.exploration.space().source()),
                                          flags.strategy),
                      .points = lane.exploration.curve(),
                      .flop_count = lane.flop_count,
                      .evaluations = lane.exploration.evaluations(),
                      .seconds = seconds});
  }
  std::ofstream stream(flags.plot);
  stream << CurveSvg(curves);
  stream.close();
  if (stream) return true;
  fmt::print(stderr, "loopfleet: cannot write '{}'\n", flags.plot);
  return false;
}

Answer<std::unique_ptr<Evaluator>> MakeEvaluator(const SearchFlags& flags,
                                                 std::optional<Client>& client) {
  if (client) {
    return std::make_unique<ClusterEvaluator>(*client, JobSpec{.labels = flags.labels});
  }
  auto opened = StoreEvaluator::Open(flags.database);
  if (opened) return *std::move(opened);
  return std::unexpected(CallError{.kind = opened.error().kind, .message = opened.error().message});
}

// Prints each benchmark's report; false: one of them has no figure.
bool PrintReports(const SearchFlags& flags, const Search& search,
                  const std::vector<Confirmed>& confirmed, double seconds) {
  bool all_ok = true;
  for (const Search::Lane& lane : search.lanes()) {
    const SearchReport report{.lane = lane,
                              .strategy = flags.strategy,
                              .seed = flags.seed,
                              .seconds = seconds,
                              .proposing = search.proposing(),
                              .confirmed = confirmed};
    if (flags.json) {
      fmt::print("{}\n", Dump(SearchJson(report)));
    } else {
      fmt::print("{}{}", &lane == search.lanes().data() ? "" : "\n", SearchText(report));
    }
    all_ok = all_ok && lane.exploration.best().has_value();
  }
  return all_ok;
}

int RunSearch(SearchFlags flags, const CommandRun& run) {
  if (const std::string wrong = Contradiction(flags); !wrong.empty()) return Refuse(wrong);
  auto explorations = MakeExplorations(flags);
  if (!explorations) return Refuse(explorations.error().message);
  std::optional<Client> client;
  if (!flags.store_only) {
    auto connected = Connect(run.settings);
    if (!connected) return Report(connected.error());
    client = *std::move(connected);
  }
  auto evaluator = MakeEvaluator(flags, client);
  if (!evaluator) return Report(evaluator.error());
  if (!flags.plot.empty() && !std::ofstream(flags.plot, std::ios::app)) {
    return Refuse(fmt::format("cannot write '{}'", flags.plot));
  }

  const SystemClock clock;
  Search search(**evaluator, clock,
                {.seconds = flags.seconds,
                 .evaluations = flags.evaluations,
                 .in_flight = flags.in_flight,
                 .winners = std::max<std::size_t>(flags.confirm, 1)});
  for (Exploration& exploration : *explorations) search.Add(std::move(exploration));
  ProgressBar bar;
  const auto ended = search.Run([&] { bar.ShowText(SearchProgressText(search)); });
  bar.Clear();
  const double seconds = search.seconds();

  // What was found is worth printing, confirmed or not.
  Answer<std::vector<Confirmed>> confirmed;
  if (!ended) {
    confirmed = std::unexpected(ended.error());
  } else if (client && flags.confirm > 0) {
    confirmed = ConfirmAll(*client, search);
  }
  const bool all_ok =
      PrintReports(flags, search, confirmed ? *confirmed : std::vector<Confirmed>(), seconds);
  const bool is_drawn = flags.plot.empty() || WritePlot(flags, search, seconds);
  if (!confirmed) return Report(confirmed.error());
  return all_ok && is_drawn ? kExitOk : kExitFailed;
}

std::string StrategyList() {
  std::string text = "how candidates are chosen: auto (default, the one to recommend)";
  for (const StrategyInfo& one : Strategies()) {
    text += fmt::format("; {}: {}", one.name, one.description);
  }
  return text;
}

}  // namespace

void AddSearchCommand(CommandLine& line) {
  auto flags = std::make_shared<SearchFlags>();
  CLI::App& app = line.AddCommand(
      line.root(),
      {.name = "search",
       .description = "Look for the quickest schedules of loops, or for passes that leave few "
                      "instructions, for so many --seconds or --evaluations (docs/SEARCH.md)",
       .examples = "loopfleet search benchmark://mm-v0/mm128_160_224 --seconds 10\n"
                   "loopfleet search benchmark://mm-v0/mm64_64_64 --strategy greedy "
                   "--evaluations 500 --plot curve.svg\n"
                   "loopfleet search benchmark://mm-v0/mm64_64_64 --evaluations 500 --store-only "
                   "--db loopfleet.db\n"
                   "loopfleet search generator://csmith-v0/7 --evaluations 500"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunSearch(*flags, run); });
  app.add_option("benchmark", flags->benchmarks,
                 "benchmark URIs: loops of dialect agent, or programs; several share the fleet")
      ->type_name("BENCHMARK")
      ->required();
  app.add_option("--strategy", flags->strategy, StrategyList())->type_name("NAME");
  app.add_option("--seconds", flags->seconds, "end after this time, for all benchmarks together")
      ->type_name("S")
      ->check(IsPositive());
  app.add_option("--evaluations", flags->evaluations, "end after so many schedules of each")
      ->type_name("N")
      ->check(IsPositive());
  app.add_option("--seed", flags->seed,
                 "with the same figures, the same seed makes the same choice (default 1)")
      ->type_name("N");
  app.add_option("--in-flight", flags->in_flight, "schedules under way at a time (default 64)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{2}, kMostInFlight));
  app.add_option("--confirm", flags->confirm,
                 "measure the K quickest kernels of each benchmark and its untuned schedule again, "
                 "three times in turns; 0: do not (default 3)")
      ->type_name("K")
      ->check(CLI::Range(std::size_t{0}, kMostConfirmed));
  app.add_option("--labels", flags->labels, "labels that the worker must carry")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("A,B,C");
  app.add_flag("--store-only", flags->store_only,
               "answer from the database --db; schedules that are not in it have no figure");
  app.add_option("--db", flags->database, "a coordinator's database")->type_name("FILE");
  app.add_flag("--json", flags->json, "print one JSON object a benchmark");
  app.add_option("--plot", flags->plot, "draw the best so far as an SVG picture")
      ->type_name("FILE");
}

}  // namespace loopfleet::client
