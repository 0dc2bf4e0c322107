#include "common/looptree/benchmark.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"
#include "client/cli/outcome_text.h"
#include "client/cli/table.h"
#include "client/outcome_json.h"
#include "common/looptree/key.h"
#include "common/looptree/text.h"

namespace loopfleet::client {
namespace {

struct BenchmarkFlags {
  std::string benchmark;
  bool json = false;
};

int RunList(const BenchmarkFlags& flags) {
  if (flags.json) {
    Json array = Json::array();
    for (const auto& dataset : looptree::Datasets()) {
      array.push_back({{"prefix", dataset.prefix},
                       {"description", dataset.description},
                       {"size", dataset.size == 0 ? Json(nullptr) : Json(dataset.size)},
                       {"example", dataset.example}});
    }
    fmt::print("{}\n", Dump(array));
    return kExitOk;
  }
  Table table({"DATASET", "SIZE", "DESCRIPTION", "EXAMPLE"});
  for (const auto& dataset : looptree::Datasets()) {
    table.Add({std::string(dataset.prefix),
               dataset.size == 0 ? "any" : std::to_string(dataset.size),
               std::string(dataset.description), std::string(dataset.example)});
  }
  fmt::print("{}", table.Text());
  return kExitOk;
}

int RunShow(const BenchmarkFlags& flags) {
  const auto benchmark = looptree::OpenBenchmark(looptree::BenchmarkUri{flags.benchmark});
  if (!benchmark) {
    fmt::print(stderr, "loopfleet: {}\n", FailureText(ToFailure(benchmark.error())));
    return kExitFailed;
  }
  const looptree::LoopTree& start = benchmark->start;
  const std::string tree =
      looptree::TreeText(start, {.dialect = benchmark->dialect, .target = benchmark->target});
  const char* dialect = benchmark->dialect == looptree::Dialect::kSimple ? "simple" : "agent";
  const char* device = benchmark->target == looptree::Target::kCuda ? "cuda" : "cpu";
  if (flags.json) {
    const Json json = {{"benchmark", flags.benchmark},
                       {"dialect", dialect},
                       {"device", device},
                       {"flop_count", looptree::FlopCount(start.program())},
                       {"tensor_bytes", looptree::TensorBytes(start.program())},
                       {"tree_key", looptree::KeyOf(start).ToString()},
                       {"loop_tree", tree},
                       {"ir", looptree::IrTextOf(start)}};
    fmt::print("{}\n", Dump(json));
    return kExitOk;
  }
  fmt::print("{}\ndialect {}, device {}, {} flop, {} bytes of tensors\n{}\n{}", flags.benchmark,
             dialect, device, looptree::FlopCount(start.program()),
             looptree::TensorBytes(start.program()), tree, looptree::IrTextOf(start));
  return kExitOk;
}

}  // namespace

void AddBenchmarkCommands(CommandLine& line) {
  CLI::App& noun =
      line.AddNoun({.name = "benchmark",
                    .description = "List data sets of benchmarks, look at one (needs no cluster)",
                    .examples = "loopfleet benchmark list\n"
                                "loopfleet benchmark show benchmark://mm-v0/mm64_64_64"});
  const auto flags = std::make_shared<BenchmarkFlags>();
  CLI::App& list = line.AddCommand(
      noun, {.name = "list", .description = "The data sets known by name", .examples = {}},
      CommandLine::Talks::kToNobody, [flags](const CommandRun&) { return RunList(*flags); });
  list.add_flag("--json", flags->json, "print one JSON array");
  CLI::App& show = line.AddCommand(
      noun,
      {.name = "show",
       .description = "A benchmark's program and the tree it starts from",
       .examples = {}},
      CommandLine::Talks::kToNobody, [flags](const CommandRun&) { return RunShow(*flags); });
  show.add_option("benchmark", flags->benchmark, "its URI")->type_name("BENCHMARK")->required();
  show.add_flag("--json", flags->json, "print one JSON value");
}

}  // namespace loopfleet::client
