#include "client/cli/text/batch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>
#include <variant>
#include <vector>

#include "client/cli/text/outcome_text.h"
#include "client/cli/text/table.h"
#include "common/base/enum_names.h"
#include "common/base/printable.h"
#include "common/job/failure.h"
#include "common/llvm_passes/observation.h"
#include "common/looptree/actions/action.h"

namespace loopfleet::client {
namespace {

double Gflops(const Winner& winner) {
  return static_cast<double>(winner.flop_count) / winner.elapsed_ns;
}

// Given winners by benchmark, the quickest first: the first of each benchmark.
std::vector<Winner> FirstOfEach(const std::vector<Winner>& winners) {
  std::vector<Winner> first;
  for (const Winner& winner : winners) {
    const bool is_next = first.empty() ||
                         SourceText(first.back().benchmark) != SourceText(winner.benchmark) ||
                         first.back().hardware_class != winner.hardware_class;
    if (is_next) first.push_back(winner);
  }
  return first;
}

// "function(gvn)" of "opt-19 -passes='function(gvn)' in.bc -o out.bc".
std::string PassesOf(std::string_view command) {
  const std::size_t open = command.find('\'');
  const std::size_t close = command.rfind('\'');
  return open == close ? "" : std::string(command.substr(open + 1, close - open - 1));
}

std::string CountsText(const std::map<std::string, std::uint32_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} {}", count, name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

void BatchReport::Add(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  if (!evaluation.ok()) {
    const Failure& failure = evaluation.failure();
    const auto [entry, is_first] = failed_.try_emplace(std::string(OutcomeLabel(evaluation)));
    if (is_first) {
      entry->second = {
          .job = outcome.job, .message = failure.message, .advice = InfoOf(failure.code).advice};
    }
    ++entry->second.count;
    return;
  }
  ++ok_;
  if (outcome.source == OutcomeSource::kStored) ++from_store_;
  if (!evaluation.is_timed()) return AddObserved(outcome);
  ++grades_[std::string(EnumName(evaluation.measurement().grade))];
  winners_.Add(outcome);
}

void BatchReport::AddObserved(const Outcome& outcome) {
  const auto& values = outcome.evaluation.observed().values;
  const auto count = values.find(passes::InfoOf(passes::Observation::kIrInstructionCount).name);
  const auto command = values.find("commandline");
  if (count == values.end() || command == values.end()) return;
  const auto* instructions = std::get_if<double>(&count->second);
  const auto* text = std::get_if<std::string>(&command->second);
  if (instructions == nullptr || text == nullptr) return;  // of a worker that says something else
  Smallest one{.job = outcome.job,
               .benchmark = SourceText(outcome.benchmark),
               .instructions = *instructions,
               .passes = PassesOf(*text)};
  std::vector<Smallest>& best = smallest_[one.benchmark];
  if (std::ranges::find(best, one.passes, &Smallest::passes) != best.end()) return;
  best.insert(std::ranges::upper_bound(best, one.instructions, {}, &Smallest::instructions),
              std::move(one));
  if (best.size() > best_) best.pop_back();
}

std::vector<BatchReport::Smallest> BatchReport::AllSmallest() const {
  std::vector<Smallest> all;
  for (const auto& [benchmark, best] : smallest_) all.insert(all.end(), best.begin(), best.end());
  return all;
}

std::string BatchReport::SmallestText() const {
  if (smallest_.empty()) return "";
  const bool is_of_many = smallest_.size() > 1;
  std::vector<Smallest> shown;
  for (const auto& [benchmark, best] : smallest_) {
    const auto first = best.begin();
    shown.insert(shown.end(), first, is_of_many ? first + 1 : best.end());
  }
  Table table({"JOB", "INSTRUCTIONS", "BENCHMARK", "PASSES"});
  for (const Smallest& one : shown | std::views::take(kMostLines)) {
    table.Add({fmt::format("{}", one.job), fmt::format("{:.0f}", one.instructions), one.benchmark,
               one.passes.empty() ? "-" : one.passes});
  }
  std::string text = fmt::format("the fewest instructions{}:\n{}",
                                 is_of_many ? " of each benchmark" : "", table.Text());
  if (shown.size() > kMostLines) {
    text += fmt::format("and {} more: `loopfleet batch show {} --best 1 --json`\n",
                        shown.size() - kMostLines, shown.front().job.batch);
  }
  return text;
}

std::map<std::string, std::uint32_t> BatchReport::failed() const {
  std::map<std::string, std::uint32_t> counts;
  for (const auto& [code, of] : failed_) counts.emplace(code, of.count);
  return counts;
}

std::string BatchReport::Summary() const {
  std::string text = fmt::format("{} ok", ok_);
  if (from_store_ > 0) text += fmt::format(" ({} from the store)", from_store_);
  std::uint32_t count = 0;
  for (const auto& [code, of] : failed_) count += of.count;
  if (count > 0) text += fmt::format(", {} failed: {}", count, CountsText(failed()));
  return text;
}

std::string BatchReport::Details() const {
  std::string text;
  for (const auto& [code, of] : failed_) {
    text += fmt::format("{}: {}\n", code, of.advice);
    if (!of.message.empty()) {
      text += fmt::format("  job {}: {}\n", of.job, Printable(of.message, "\n\t"));
    }
  }
  if (!grades_.empty()) text += fmt::format("grades: {}\n", CountsText(grades_));
  std::vector<Winner> best = winners_.Sorted();
  std::vector<Winner> first = FirstOfEach(best);
  const bool is_of_many = first.size() > 1;
  if (is_of_many) best = std::move(first);
  if (best.empty()) return text + SmallestText();
  Table table({"JOB", "GFLOP/S", "RUN TIME", "GRADE", "BENCHMARK", "ACTIONS"});
  for (const Winner& winner : best | std::views::take(kMostLines)) {
    table.Add({fmt::format("{}", winner.job), fmt::format("{:.1f}", Gflops(winner)),
               DurationText(Nanos(static_cast<std::int64_t>(winner.elapsed_ns))),
               std::string(EnumName(winner.grade)), SourceText(winner.benchmark),
               winner.actions.empty()
                   ? "-"
                   : fmt::format("{}", fmt::join(looptree::ActionNames(winner.actions), ","))});
  }
  text += fmt::format("the quickest{}:\n{}", is_of_many ? " of each benchmark" : "", table.Text());
  if (best.size() > kMostLines) {
    text += fmt::format("and {} more: `loopfleet batch show {} --best 1 --json`\n",
                        best.size() - kMostLines, best.front().job.batch);
  }
  return text + SmallestText();
}

Json BatchReport::ToJson() const {
  Json best = Json::array();
  for (const Winner& winner : winners_.Sorted()) {
    best.push_back({{"job", fmt::format("{}", winner.job)},
                    {"benchmark", SourceText(winner.benchmark)},
                    {"actions", looptree::ActionNames(winner.actions)},
                    {"hardware_class", winner.hardware_class},
                    {"gflop_per_second", Gflops(winner)},
                    {"elapsed_ns", winner.elapsed_ns},
                    {"grade", std::string(EnumName(winner.grade))}});
  }
  for (const Smallest& one : AllSmallest()) {
    best.push_back({{"job", fmt::format("{}", one.job)},
                    {"benchmark", one.benchmark},
                    {"instructions", one.instructions},
                    {"passes", one.passes}});
  }
  return {{"ok", ok_},
          {"from_store", from_store_},
          {"failed", failed()},
          {"grades", grades_},
          {"best", std::move(best)}};
}

}  // namespace loopfleet::client
