#include "client/cli/completion_words.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string_view>

#include "client/search/strategy_table.h"
#include "common/llvm_passes/observation.h"
#include "common/llvm_passes/pass_action.h"
#include "common/llvm_passes/program_datasets.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/datasets/benchmark.h"

namespace loopfleet::client {
namespace {

constexpr std::string_view kScheme = "benchmark://";

// As FullUri reads it: shells break words at the colon. Others ("generator://...") are left out.
void AddShort(std::string_view uri, std::vector<std::string>& words) {
  if (uri.starts_with(kScheme)) words.emplace_back(uri.substr(kScheme.size()));
}

CompletionWords Benchmarks() {
  CompletionWords all;
  for (const auto& dataset : looptree::Datasets()) AddShort(dataset.example, all.words);
  for (const auto& dataset : passes::ProgramDatasets()) AddShort(dataset.example, all.words);
  return all;
}

CompletionWords Datasets() {
  CompletionWords all;
  const auto add = [&](std::string_view prefix) {
    const std::string_view name = prefix.substr(prefix.find("://") + 3);
    all.words.emplace_back(name.substr(0, name.size() - 1));
  };
  for (const auto& dataset : looptree::Datasets()) add(dataset.prefix);
  for (const auto& dataset : passes::ProgramDatasets()) add(dataset.prefix);
  return all;
}

CompletionWords Actions() {
  const auto names = looptree::UsualActionNames();
  return {.words = {names.begin(), names.end()}, .command = {}, .is_list = true};
}

CompletionWords Passes() {
  CompletionWords all{.words = {}, .command = {}, .is_list = true};
  for (const auto& action : passes::ActionsOf(passes::ActionSpace::kDistinct)) {
    all.words.emplace_back(action.flag.substr(1));  // without its dash
  }
  return all;
}

CompletionWords Observations() {
  CompletionWords all{.words = {}, .command = {}, .is_list = true};
  for (const auto& info : passes::ObservationTable()) all.words.emplace_back(info.name);
  return all;
}

CompletionWords StrategyNames() {
  CompletionWords all{.words = {std::string(kAuto)}, .command = {}};
  for (const StrategyInfo& one : Strategies()) all.words.emplace_back(one.name);
  return all;
}

// The first column of a list, without its head.
std::string FirstColumn(std::string_view list) {
  return fmt::format("loopfleet {} list --timeout 2 2>/dev/null | tail -n +2 | cut -d\" \" -f1",
                     list);
}

}  // namespace

CompletionWords WordsFor(const CLI::Option& option) {
  static const std::map<std::string, std::function<CompletionWords()>, std::less<>> by_name = {
      {"benchmark", Benchmarks},
      {"dataset", Datasets},
      {"batch", [] { return CompletionWords{{"last"}, FirstColumn("batch")}; }},
      {"worker", [] { return CompletionWords{{}, FirstColumn("worker")}; }},
      {"--actions", Actions},
      {"--passes", Passes},
      {"--observe", Observations},
      {"--strategy", StrategyNames},
  };
  const auto found = by_name.find(option.get_name());
  return found == by_name.end() ? CompletionWords{} : found->second();
}

}  // namespace loopfleet::client
