#include "client/cli/text/confirmation_text.h"

#include <fmt/format.h>

#include "client/cli/text/outcome_text.h"
#include "client/cli/text/table.h"
#include "common/looptree/actions/action.h"

namespace loopfleet::client {
namespace {

double Gflops(const Winner& winner, double elapsed_ns) {
  return static_cast<double>(winner.flop_count) / elapsed_ns;
}

}  // namespace

std::string ConfirmedText(const std::vector<Confirmed>& confirmed) {
  Table table({"BENCHMARK", "GFLOP/S AT FIRST", "CONFIRMED", "TOO GOOD BY", "ACTIONS"});
  for (const Confirmed& one : confirmed) {
    const bool is_known = !one.remeasured_ns().empty();
    const std::vector<std::string> actions = looptree::ActionNames(one.winner.actions);
    table.Add({SourceText(one.winner.benchmark),
               fmt::format("{:.1f}", Gflops(one.winner, one.winner.elapsed_ns)),
               is_known ? fmt::format("{:.1f}{}", Gflops(one.winner, one.elapsed_ns()),
                                      one.is_disturbed() ? ", disturbed" : "")
                        : "no figure",
               is_known ? fmt::format("{:.2f} %", 100 * one.bias()) : "-",
               actions.empty() ? "-" : fmt::format("{}", fmt::join(actions, ","))});
  }
  return table.Text();
}

Json ConfirmedJson(const std::vector<Confirmed>& confirmed) {
  Json list = Json::array();
  for (const Confirmed& one : confirmed) {
    const bool is_known = !one.remeasured_ns().empty();
    list.push_back({{"job", fmt::format("{}", one.winner.job)},
                    {"benchmark", SourceText(one.winner.benchmark)},
                    {"actions", looptree::ActionNames(one.winner.actions)},
                    {"elapsed_ns", one.winner.elapsed_ns},
                    {"confirmed_ns", is_known ? Json(one.elapsed_ns()) : Json(nullptr)},
                    {"bias", is_known ? Json(one.bias()) : Json(nullptr)},
                    {"remeasured_ns", one.remeasured_ns()},
                    {"disturbed", one.is_disturbed()}});
  }
  return list;
}

}  // namespace loopfleet::client
