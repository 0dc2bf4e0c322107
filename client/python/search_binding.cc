#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "client/python/bindings.h"
#include "client/python/conversion.h"
#include "client/python/job_binding.h"
#include "client/search/exploration.h"
#include "client/search/loop_space.h"
#include "client/search/open_space.h"
#include "client/search/pace.h"
#include "client/search/pass_space.h"
#include "client/search/store_evaluator.h"
#include "client/search/strategies/strategies.h"
#include "client/search/strategy_table.h"
#include "common/job/task.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/program/program.h"
#include "common/looptree/text/text.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using client::Candidate;
using client::Evaluated;
using Names = std::vector<std::string>;

template <class T>
T Must(Result<T> result) {
  if (!result) throw nb::value_error(result.error().message.c_str());
  return *std::move(result);
}

// Of loops the actions, of a program the passes.
Names NamesOf(const Candidate& candidate) {
  if (!candidate.passes.empty()) return candidate.passes;
  return looptree::ActionNames(candidate.actions);
}

// scorer(list of action lists) -> one number each.
class CalledScorer : public client::Scorer {
 public:
  explicit CalledScorer(nb::object function) : function_(std::move(function)) {}

  std::vector<double> Score(std::span<const Candidate> candidates) override {
    std::vector<Names> actions;
    for (const Candidate& one : candidates) actions.push_back(NamesOf(one));
    std::vector<double> scores;
    if (!nb::try_cast(function_(actions), scores)) {
      throw nb::type_error("a scorer must return a list of numbers");
    }
    if (scores.size() != actions.size()) {
      throw nb::value_error("a scorer must return one number for each schedule");
    }
    for (const double score : scores) {
      if (std::isnan(score)) throw nb::value_error("a scorer may not return not-a-number");
    }
    return scores;
  }
  void Learn(std::span<const Evaluated>) override {}

 private:
  nb::object function_;
};

Candidate CandidateOf(const client::SearchSpace& space, const Names& names) {
  if (const auto* passes = dynamic_cast<const client::PassSpace*>(&space)) {
    return Must(passes->FromPasses(names));
  }
  auto actions = looptree::ParseActions(names);
  if (!actions) throw nb::value_error(actions.error().message.c_str());
  return Must(dynamic_cast<const client::LoopSpace&>(space).FromActions(*actions));
}

// strategy(n, results) -> up to n lists of names; results: (names, cost or None), new ones. What a
// scorer passed over is not among them: None would say that it failed.
class CalledStrategy : public client::Strategy {
 public:
  CalledStrategy(client::SharedSpace space, nb::object function)
      : space_(std::move(space)), function_(std::move(function)) {}

  std::vector<Candidate> Propose(std::size_t most) override {
    const nb::object results = std::exchange(news_, nb::list());
    std::vector<Candidate> proposed;
    std::vector<Names> lists;
    if (!nb::try_cast(function_(most, results), lists)) {
      throw nb::type_error("a strategy must return lists of actions, each a list of names");
    }
    if (lists.size() > most) {
      throw nb::value_error(
          fmt::format("the strategy was asked for at most {} lists of actions and returned {}",
                      most, lists.size())
              .c_str());
    }
    for (const Names& names : lists) proposed.push_back(CandidateOf(*space_, names));
    return proposed;
  }
  void Tell(std::span<const Evaluated> results) override {
    for (const Evaluated& one : results) {
      if (!one.is_tried) continue;
      const bool is_known = one.cost != client::kNoFigure;
      news_.append(
          nb::make_tuple(NamesOf(one.candidate), is_known ? nb::cast(one.cost) : nb::none()));
    }
  }

 private:
  client::SharedSpace space_;
  nb::object function_;
  nb::list news_;
};

// A StoreEvaluator that answers at once.
class StoredOutcomes {
 public:
  explicit StoredOutcomes(const std::string& file) {
    auto opened = client::StoreEvaluator::Open(file);
    if (!opened) throw std::runtime_error(opened.error().message);
    evaluator_ = *std::move(opened);
  }

  std::vector<OutcomeRow> Answer(const std::vector<Job>& jobs) {
    std::vector<client::Trial> trials;
    for (const Job& job : jobs) {
      const auto task = TaskOf(job.spec).resolve(job.spec);
      if (!task) Raise(task.error());
      trials.push_back({.source = job.spec.source, .candidate = {.key = task->subject}});
    }
    const auto sent = evaluator_->Send(trials);
    if (!sent) throw std::runtime_error(sent.error().message);
    const auto outcomes = evaluator_->Receive();
    std::vector<OutcomeRow> rows;
    for (const Outcome& outcome : *outcomes) rows.push_back(RowOf(outcome));
    return rows;
  }

 private:
  std::unique_ptr<client::StoreEvaluator> evaluator_;
};

// The candidates under way are kept here; Python knows them by number.
class Searcher {
 public:
  Searcher(client::SharedSpace space, std::unique_ptr<client::Strategy> strategy)
      : exploration_(std::move(space), std::move(strategy)) {}

  std::vector<std::pair<std::uint64_t, Candidate>> Ask(std::size_t most) {
    std::vector<std::pair<std::uint64_t, Candidate>> asked;
    for (Candidate& one : exploration_.Ask(most)) {
      asked.emplace_back(++last_, one);
      under_way_.emplace(last_, std::move(one));
    }
    return asked;
  }
  void Tell(const std::vector<std::uint64_t>& numbers,
            const std::vector<std::optional<double>>& figures, double seconds) {
    if (numbers.size() != figures.size()) throw nb::value_error("one figure for each number");
    std::vector<Evaluated> results;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      auto node = under_way_.extract(numbers[i]);
      if (node.empty()) throw nb::value_error("this number is not under way");
      results.push_back(
          {.candidate = std::move(node.mapped()), .cost = figures[i].value_or(client::kNoFigure)});
    }
    exploration_.Tell(results, seconds);
  }
  const client::Exploration& exploration() const { return exploration_; }

 private:
  client::Exploration exploration_;
  std::map<std::uint64_t, Candidate> under_way_;
  std::uint64_t last_ = 0;
};

void MakeSearcher(Searcher* place, std::string benchmark, std::string ir,
                  const nb::object& strategy, std::uint64_t seed, const nb::object& scorer,
                  const std::vector<Names>& start) {
  const client::SharedSpace space =
      Must(client::OpenSearchSpace(SourceOf(std::move(benchmark), std::move(ir))));
  std::unique_ptr<client::Strategy> made;
  if (nb::isinstance<nb::str>(strategy)) {
    const auto name = nb::cast<std::string>(strategy);
    const client::StrategyInfo* found = Must(client::FindStrategy(name));
    if (found->is_for_loops_only && client::IsProgram(space->source())) {
      throw nb::value_error(fmt::format("strategy '{}' is for loops", found->name).c_str());
    }
    made = found->make(space, seed);
  } else {
    made = std::make_unique<CalledStrategy>(space, strategy);
  }
  if (!scorer.is_none()) {
    made = client::MakeGuided(std::move(made), std::make_unique<CalledScorer>(scorer), seed);
  }
  if (!start.empty()) {
    std::vector<Candidate> first;
    for (const Names& names : start) first.push_back(CandidateOf(*space, names));
    made = client::MakeStarted(std::move(made), std::move(first));
  }
  new (place) Searcher(space, std::move(made));
}

}  // namespace

void BindSearch(nb::module_& module) {
  nb::class_<Searcher>(
      module, "Searcher",
      "One search of one benchmark: asks a strategy for schedules, or passes over a "
      "program, that are new, and remembers their costs: nanoseconds, or "
      "instructions. Measures nothing by itself.")
      .def("__init__", &MakeSearcher, "benchmark"_a = "", "ir"_a = "", "strategy"_a = "auto",
           "seed"_a = 1, "scorer"_a = nb::none(), "start"_a = std::vector<Names>{})
      .def(
          "ask",
          [](Searcher& searcher, std::size_t most) {
            nb::list list;
            for (const auto& [number, candidate] : searcher.Ask(most)) {
              list.append(nb::make_tuple(number, NamesOf(candidate)));
            }
            return list;
          },
          "most"_a,
          "(number, actions) of up to so many; the first of all is the untuned schedule, alone. "
          "None: nothing new is left, or it waits for figures.")
      .def(
          "most_under_way",
          [](const Searcher& searcher, double seconds, double took) {
            return client::MostUnderWay(seconds, took, searcher.exploration().evaluations());
          },
          "seconds"_a, "took"_a,
          "How many may be under way in a search of so many seconds, of which `took` are over. For "
          "a searcher that was told something.")
      .def(
          "cut_above",
          [](const Searcher& searcher, double factor) {
            const auto& best = searcher.exploration().best();
            return best ? client::CutAbove(factor, best->cost) : 0.0;
          },
          "factor"_a,
          "The bound, in nanoseconds, above which a schedule is cut: so many times the best so "
          "far, "
          "and 5 ms above it at most. 0: there is none.")
      .def("tell", &Searcher::Tell, "numbers"_a, "costs"_a, "seconds"_a,
           "Figures of what was asked for; None: it has none.")
      .def_prop_ro("best_cost",
                   [](const Searcher& searcher) -> std::optional<double> {
                     const auto& best = searcher.exploration().best();
                     return best ? std::optional(best->cost) : std::nullopt;
                   })
      .def_prop_ro("best_actions",
                   [](const Searcher& searcher) -> std::optional<Names> {
                     const auto& best = searcher.exploration().best();
                     return best ? std::optional(NamesOf(best->candidate)) : std::nullopt;
                   })
      .def_prop_ro("best_tree",
                   [](const Searcher& searcher) -> std::optional<std::string> {
                     const auto& best = searcher.exploration().best();
                     if (!best || client::IsProgram(searcher.exploration().space().source())) {
                       return std::nullopt;
                     }
                     return looptree::TreeText(best->candidate.tree, {});
                   })
      .def_prop_ro("start_cost",
                   [](const Searcher& searcher) { return searcher.exploration().start_cost(); })
      .def_prop_ro("evaluations",
                   [](const Searcher& searcher) { return searcher.exploration().evaluations(); })
      .def_prop_ro("without_figure",
                   [](const Searcher& searcher) { return searcher.exploration().without_figure(); })
      .def_prop_ro(
          "curve",
          [](const Searcher& searcher) {
            nb::list list;
            for (const client::CurvePoint& point : searcher.exploration().curve()) {
              list.append(nb::make_tuple(point.evaluations, point.seconds, point.best_cost));
            }
            return list;
          },
          "(evaluations, seconds, best_cost) at each improvement.");
  nb::class_<StoredOutcomes>(module, "StoredOutcomes",
                             "Answers from a database file alone. RuntimeError: it cannot be read.")
      .def(nb::init<const std::string&>(), "path"_a)
      .def("answer", &StoredOutcomes::Answer, "jobs"_a,
           "In the order of the jobs, for loops; the first job ever is the untuned schedule's. "
           "NOT_FOUND: the file has no figure of this tree.");
  module.def(
      "strategies",
      [] {
        nb::list list;
        for (const client::StrategyInfo& one : client::Strategies()) {
          list.append(nb::make_tuple(std::string(one.name), std::string(one.description)));
        }
        return list;
      },
      "(name, description) of each.");
}

}  // namespace loopfleet::python
