#include "client/cli/text/batch_report.h"

#include <fmt/format.h>

#include <ranges>
#include <utility>
#include <vector>

#include "client/cli/text/outcome_text.h"
#include "client/cli/text/table.h"
#include "common/base/enum_names.h"
#include "common/job/failure.h"

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
  if (!evaluation.is_timed()) return;
  ++grades_[std::string(EnumName(evaluation.measurement().grade))];
  winners_.Add(outcome);
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
    if (!of.message.empty()) text += fmt::format("  job {}: {}\n", of.job, of.message);
  }
  if (!grades_.empty()) text += fmt::format("grades: {}\n", CountsText(grades_));
  std::vector<Winner> best = winners_.Sorted();
  std::vector<Winner> first = FirstOfEach(best);
  const bool is_of_many = first.size() > 1;
  if (is_of_many) best = std::move(first);
  if (best.empty()) return text;
  Table table({"JOB", "GFLOP/S", "RUN TIME", "GRADE", "BENCHMARK", "ACTIONS"});
  for (const Winner& winner : best | std::views::take(kMostLines)) {
    table.Add({fmt::format("{}", winner.job), fmt::format("{:.1f}", Gflops(winner)),
               DurationText(Nanos(static_cast<std::int64_t>(winner.elapsed_ns))),
               std::string(EnumName(winner.grade)), SourceText(winner.benchmark),
               winner.actions.empty()
                   ? "-"
                   : fmt::format("{}", fmt::join(NamesOf(winner.actions), ","))});
  }
  text += fmt::format("the quickest{}:\n{}", is_of_many ? " of each benchmark" : "", table.Text());
  if (best.size() > kMostLines) {
    text += fmt::format("and {} more: `loopfleet batch show {} --best 1 --json`\n",
                        best.size() - kMostLines, best.front().job.batch);
  }
  return text;
}

Json BatchReport::ToJson() const {
  Json best = Json::array();
  for (const Winner& winner : winners_.Sorted()) {
    best.push_back({{"job", fmt::format("{}", winner.job)},
                    {"benchmark", SourceText(winner.benchmark)},
                    {"actions", NamesOf(winner.actions)},
                    {"hardware_class", winner.hardware_class},
                    {"gflop_per_second", Gflops(winner)},
                    {"elapsed_ns", winner.elapsed_ns},
                    {"grade", std::string(EnumName(winner.grade))}});
  }
  return {{"ok", ok_},
          {"from_store", from_store_},
          {"failed", failed()},
          {"grades", grades_},
          {"best", std::move(best)}};
}

}  // namespace loopfleet::client
