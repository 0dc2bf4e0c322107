#include "client/cli/text/search_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

#include "client/cli/text/confirmation_text.h"
#include "client/cli/text/outcome_text.h"
#include "client/search/loop_space.h"
#include "common/base/counted.h"
#include "common/base/printable.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/text/text.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kProgressLanes = 2;  // a line has room for no more

// A figure of the search and what became of it when it was measured again.
struct Figure {
  double elapsed_ns = 0;
  std::optional<double> confirmed_ns;
  bool is_disturbed = false;
  double ns() const { return confirmed_ns.value_or(elapsed_ns); }
};

// The report's best schedule: the quickest of the confirmed, if there are any.
struct Best {
  Candidate candidate;
  Figure figure;
};

bool IsOf(const Search::Lane& lane, const Confirmed& one) {
  return one.winner.benchmark == lane.exploration.space().source() && !one.remeasured_ns().empty();
}

std::optional<Best> BestOf(const SearchReport& report) {
  const Exploration& exploration = report.lane.exploration;
  if (!exploration.best()) return std::nullopt;
  Best best{.candidate = exploration.best()->candidate,
            .figure = {.elapsed_ns = exploration.best()->cost}};
  for (const Confirmed& one : report.confirmed) {
    if (!IsOf(report.lane, one)) continue;
    if (best.figure.confirmed_ns && *best.figure.confirmed_ns <= one.elapsed_ns()) continue;
    const auto& space = dynamic_cast<const LoopSpace&>(exploration.space());
    if (auto candidate = space.FromActions(one.winner.actions)) {
      best = {.candidate = *std::move(candidate),
              .figure = {.elapsed_ns = one.winner.elapsed_ns,
                         .confirmed_ns = one.elapsed_ns(),
                         .is_disturbed = one.is_disturbed()}};
    }
  }
  return best;
}

std::optional<Figure> UntunedOf(const SearchReport& report) {
  const auto start_ns = report.lane.exploration.start_cost();
  if (!start_ns) return std::nullopt;
  Figure untuned{.elapsed_ns = *start_ns};
  for (const Confirmed& one : report.confirmed) {
    if (IsOf(report.lane, one) && one.winner.actions.empty())
      untuned.confirmed_ns = one.elapsed_ns();
  }
  return untuned;
}

double Gflops(const Search::Lane& lane, double elapsed_ns) {
  return static_cast<double>(lane.flop_count) / elapsed_ns;
}

std::string EvalCommand(const std::string& benchmark, const Candidate& candidate) {
  const std::vector<std::string> names = looptree::ActionNames(candidate.actions);
  return names.empty()
             ? fmt::format("loopfleet eval {}", benchmark)
             : fmt::format("loopfleet eval {} --actions {}", benchmark, fmt::join(names, ","));
}

Json FigureJson(const Search::Lane& lane, const Figure& figure) {
  return {{"elapsed_ns", figure.elapsed_ns},
          {"confirmed_ns", figure.confirmed_ns ? Json(*figure.confirmed_ns) : Json(nullptr)},
          {"gflop_per_second", Gflops(lane, figure.ns())}};
}

Json CurveJson(const Search::Lane& lane) {
  Json curve = Json::array();
  for (const CurvePoint& point : lane.exploration.curve()) {
    curve.push_back({{"evaluations", point.evaluations},
                     {"seconds", point.seconds},
                     {"best_ns", point.best_cost},
                     {"gflop_per_second", Gflops(lane, point.best_cost)}});
  }
  return curve;
}

// ---- passes over a program

// Instructions stand where the figure of a schedule does.
std::string InstructionsText(double count) {
  return Counted(static_cast<std::uint64_t>(count), "instruction", "instructions");
}

std::string PassCommand(const std::string& benchmark, const Candidate& candidate) {
  return candidate.passes.empty() ? fmt::format("loopfleet eval {}", benchmark)
                                  : fmt::format("loopfleet eval {} --passes={}", benchmark,
                                                fmt::join(candidate.passes, ","));
}

std::string NoFigureText(const Search::Lane& lane) {
  return fmt::format("none has a figure{}{}\n", lane.failure.empty() ? "" : ": ",
                     Printable(lane.failure, "\n\t"));
}

std::string PassSearchText(const SearchReport& report) {
  const Exploration& exploration = report.lane.exploration;
  const std::string benchmark = SourceText(exploration.space().source());
  std::string text =
      fmt::format("{}: {} in {:.1f} s, strategy {}, seed {}, {} failed{}\n", benchmark,
                  Counted(exploration.evaluations(), "sequence", "sequences"), report.seconds,
                  report.strategy, report.seed, exploration.without_figure(),
                  report.lane.is_exhausted ? "; nothing is left to try" : "");
  const auto& best = exploration.best();
  if (!best) return text + NoFigureText(report.lane);
  text += fmt::format("best: {} after {}", InstructionsText(best->cost),
                      Counted(best->candidate.passes.size(), "pass", "passes"));
  if (const auto start = exploration.start_cost())
    text += fmt::format("; {} before", Thousands(static_cast<std::uint64_t>(*start)));
  if (const auto oz = report.lane.instructions_oz)
    text += fmt::format("; {} after -Oz", Thousands(static_cast<std::uint64_t>(*oz)));
  return text + fmt::format("\nagain: {}\n", PassCommand(benchmark, best->candidate));
}

Json PassSearchJson(const SearchReport& report) {
  const Exploration& exploration = report.lane.exploration;
  const std::string benchmark = SourceText(exploration.space().source());
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json curve = Json::array();
  for (const CurvePoint& point : exploration.curve()) {
    curve.push_back({{"evaluations", point.evaluations},
                     {"seconds", point.seconds},
                     {"instructions", point.best_cost}});
  }
  Json json = {{"benchmark", benchmark},
               {"strategy", report.strategy},
               {"seed", report.seed},
               {"evaluations", exploration.evaluations()},
               {"without_figure", exploration.without_figure()},
               {"seconds", report.seconds},
               {"is_exhausted", report.lane.is_exhausted},
               {"instructions", number(exploration.start_cost())},
               {"instructions_oz", number(report.lane.instructions_oz)},
               {"best", nullptr},
               {"curve", std::move(curve)}};
  if (const auto& best = exploration.best()) {
    json["best"] = {{"instructions", best->cost},
                    {"passes", best->candidate.passes},
                    {"command", PassCommand(benchmark, best->candidate)}};
  }
  return json;
}

}  // namespace

std::string SearchText(const SearchReport& report) {
  if (IsProgram(report.lane.exploration.space().source())) return PassSearchText(report);
  const Search::Lane& lane = report.lane;
  const Exploration& exploration = lane.exploration;
  const std::string benchmark = SourceText(exploration.space().source());
  std::string text =
      fmt::format("{}: {} in {:.1f} s, strategy {}, seed {}, {} without a figure{}\n", benchmark,
                  Counted(exploration.evaluations(), "schedule", "schedules"), report.seconds,
                  report.strategy, report.seed, exploration.without_figure(),
                  lane.is_exhausted ? "; nothing is left to try" : "");
  if (lane.other_hardware > 0) {
    text += fmt::format("{} not of {} and not used\n",
                        Counted(lane.other_hardware, "figure was", "figures were"),
                        Printable(lane.hardware_class));
  }
  const std::optional<Best> best = BestOf(report);
  if (!best) return text + NoFigureText(lane);
  text += looptree::TreeText(best->candidate.tree, {});
  const Figure& figure = best->figure;
  text +=
      fmt::format("best: {:.4g} GFLOP/s, {} a run{}\n", Gflops(lane, figure.ns()),
                  DurationText(Nanos(static_cast<std::int64_t>(figure.ns()))),
                  figure.confirmed_ns ? fmt::format(", {} ({:.4g} GFLOP/s at first)",
                                                    figure.is_disturbed ? "disturbed" : "confirmed",
                                                    Gflops(lane, figure.elapsed_ns))
                                      : ", not confirmed");
  if (const auto untuned = UntunedOf(report)) {
    text += fmt::format("untuned: {:.4g} GFLOP/s; {:.2f} times as fast now\n",
                        Gflops(lane, untuned->ns()), untuned->ns() / figure.ns());
  }
  return text + fmt::format("again: {}\n", EvalCommand(benchmark, best->candidate));
}

Json SearchJson(const SearchReport& report) {
  if (IsProgram(report.lane.exploration.space().source())) return PassSearchJson(report);
  const Search::Lane& lane = report.lane;
  const Exploration& exploration = lane.exploration;
  const std::string benchmark = SourceText(exploration.space().source());
  const std::optional<Best> best = BestOf(report);
  const std::optional<Figure> untuned = UntunedOf(report);
  std::vector<Confirmed> confirmed;
  std::ranges::copy_if(report.confirmed, std::back_inserter(confirmed), [&](const Confirmed& one) {
    return one.winner.benchmark == exploration.space().source();
  });
  Json json = {{"benchmark", benchmark},
               {"strategy", report.strategy},
               {"seed", report.seed},
               {"evaluations", exploration.evaluations()},
               {"without_figure", exploration.without_figure()},
               {"seconds", report.seconds},
               {"proposing_seconds", std::chrono::duration<double>(report.proposing).count()},
               {"is_exhausted", lane.is_exhausted},
               {"untuned", untuned ? FigureJson(lane, *untuned) : Json(nullptr)},
               {"best", nullptr},
               {"speed_up", nullptr},
               {"curve", CurveJson(lane)},
               {"confirmed", ConfirmedJson(confirmed)}};
  if (!best) return json;
  json["best"] = FigureJson(lane, best->figure);
  json["best"]["actions"] = looptree::ActionNames(best->candidate.actions);
  json["best"]["tree_key"] = best->candidate.key.ToString();
  json["best"]["loop_tree"] = looptree::TreeText(best->candidate.tree, {});
  json["best"]["command"] = EvalCommand(benchmark, best->candidate);
  if (untuned) json["speed_up"] = untuned->ns() / best->figure.ns();
  return json;
}

std::string SearchProgressText(const Search& search) {
  std::string text = fmt::format("{:.1f} s", search.seconds());
  for (const Search::Lane& lane : search.lanes()) {
    if (&lane == search.lanes().data() + kProgressLanes) return text + " ...";
    const Exploration& exploration = lane.exploration;
    const std::string benchmark = SourceText(exploration.space().source());
    const bool is_program = IsProgram(exploration.space().source());
    text += fmt::format("  {}: {}", benchmark.substr(benchmark.rfind('/') + 1),
                        is_program ? Counted(exploration.evaluations(), "sequence", "sequences")
                                   : Counted(exploration.evaluations(), "schedule", "schedules"));
    if (exploration.best() && is_program) {
      text += fmt::format(", best {}", InstructionsText(exploration.best()->cost));
    } else if (exploration.best()) {
      text += fmt::format(", best {:.4g} GFLOP/s", Gflops(lane, exploration.best()->cost));
    }
  }
  return text;
}

}  // namespace loopfleet::client
