#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/outcome_text.h"
#include "client/cli/text/table.h"
#include "client/job_line.h"
#include "client/outcome_json.h"
#include "common/base/random.h"
#include "common/base/result.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"

namespace loopfleet::client {
namespace {

struct BenchmarkFlags {
  std::string benchmark;
  std::vector<std::string> datasets;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> limit;
  std::uint64_t count = 1;
  std::optional<std::uint64_t> seed;
  bool json = false;
};

int Refuse(const looptree::Rejection& rejection) {
  fmt::print(stderr, "loopfleet: {}\n", FailureText(ToFailure(rejection)));
  return kExitFailed;
}

looptree::Checked<std::vector<looptree::Dataset>> NamedDatasets(
    const std::vector<std::string>& names) {
  std::vector<looptree::Dataset> datasets;
  for (const std::string& name : names) {
    LF_TRY(const looptree::Dataset* dataset, looptree::FindDataset(name));
    datasets.push_back(*dataset);
  }
  if (names.empty()) {
    datasets.assign(looptree::Datasets().begin(), looptree::Datasets().end());
  }
  return datasets;
}

looptree::Rejection Uncountable(const looptree::Dataset& dataset) {
  return {
      .code = looptree::RejectionCode::kInvalidBenchmark,
      .message = fmt::format("{} has no end to list or draw from: name a member, for example {}",
                             dataset.prefix, dataset.example),
      .action_index = {}};
}

int ListDatasets(const BenchmarkFlags& flags) {
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

// Prints each member as it is generated: a data set may have eight million.
int ListMembers(const looptree::Dataset& dataset, const BenchmarkFlags& flags) {
  if (dataset.size == 0) return Refuse(Uncountable(dataset));
  const std::uint64_t begin = std::min(flags.offset, dataset.size);
  const std::uint64_t left = dataset.size - begin;
  const std::uint64_t end = begin + std::min(flags.limit.value_or(left), left);
  if (flags.json) fmt::print("[");
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::string uri = looptree::DatasetMember(dataset, i);
    if (flags.json) {
      fmt::print("{}{}", i == begin ? "" : ", ", Dump(Json(uri)));
    } else {
      fmt::print("{}\n", uri);
    }
    if (std::ferror(stdout) != 0) return kExitFailed;  // the reader has gone
  }
  if (flags.json) fmt::print("]\n");
  return kExitOk;
}

int RunList(const BenchmarkFlags& flags) {
  if (flags.datasets.empty()) return ListDatasets(flags);
  const auto dataset = looptree::FindDataset(flags.datasets.front());
  if (!dataset) return Refuse(dataset.error());
  return ListMembers(**dataset, flags);
}

int RunCount(const BenchmarkFlags& flags) {
  const auto datasets = NamedDatasets(flags.datasets);
  if (!datasets) return Refuse(datasets.error());
  Json json = Json::object();
  for (const looptree::Dataset& dataset : *datasets) {
    json[std::string(dataset.prefix)] = dataset.size == 0 ? Json(nullptr) : Json(dataset.size);
  }
  if (flags.json) {
    fmt::print("{}\n", Dump(json));
  } else if (datasets->size() == 1) {
    fmt::print("{}\n",
               datasets->front().size == 0 ? "any" : std::to_string(datasets->front().size));
  } else {
    Table table({"DATASET", "SIZE"});
    for (const looptree::Dataset& dataset : *datasets) {
      table.Add(
          {std::string(dataset.prefix), dataset.size == 0 ? "any" : std::to_string(dataset.size)});
    }
    fmt::print("{}", table.Text());
  }
  return kExitOk;
}

int RunRandom(const BenchmarkFlags& flags) {
  const auto datasets = NamedDatasets(flags.datasets);
  if (!datasets) return Refuse(datasets.error());
  for (const looptree::Dataset& dataset : *datasets) {
    if (!flags.datasets.empty() && dataset.size == 0) return Refuse(Uncountable(dataset));
  }
  const std::uint64_t seed = flags.seed ? *flags.seed : OsRandom64();
  if (!flags.seed) fmt::print(stderr, "seed {}\n", seed);
  SplitMix64 random(seed);
  if (flags.json) fmt::print("[");
  for (std::uint64_t i = 0; i < flags.count; ++i) {
    const std::string uri = looptree::RandomBenchmark(*datasets, random);
    if (flags.json) {
      fmt::print("{}{}", i == 0 ? "" : ", ", Dump(Json(uri)));
    } else {
      fmt::print("{}\n", uri);
    }
    if (std::ferror(stdout) != 0) return kExitFailed;
  }
  if (flags.json) fmt::print("]\n");
  return kExitOk;
}

int RunShow(const BenchmarkFlags& flags) {
  const auto benchmark = looptree::OpenBenchmark(looptree::BenchmarkUri{FullUri(flags.benchmark)});
  if (!benchmark) return Refuse(benchmark.error());
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
                    .description = "List data sets and their benchmarks, look at one (no cluster)",
                    .examples = "loopfleet benchmark list\n"
                                "loopfleet benchmark list mm64_256_16_range-v0 --limit 10\n"
                                "loopfleet benchmark random conv_train-v0 --seed 1 --count 5\n"
                                "loopfleet benchmark show benchmark://mm-v0/mm64_64_64"});
  const auto flags = std::make_shared<BenchmarkFlags>();
  const auto talks = CommandLine::Talks::kOffline;
  const auto add_json = [&](CLI::App& app, const char* what) {
    app.add_flag("--json", flags->json, what);
  };
  CLI::App& list =
      line.AddCommand(noun,
                      {.name = "list",
                       .description = "The data sets known by name, or the benchmarks of one",
                       .examples = "loopfleet benchmark list mm8_16_128_128-v0"},
                      talks, [flags](const CommandRun&) { return RunList(*flags); });
  auto* dataset = list.add_option("dataset", flags->datasets, "list this data set's benchmarks")
                      ->type_name("DATASET")
                      ->expected(0, 1);
  list.add_option("--offset", flags->offset, "leave out so many from the start")
      ->type_name("N")
      ->needs(dataset);
  list.add_option("--limit", flags->limit, "list at most so many")->type_name("N")->needs(dataset);
  add_json(list, "print one JSON array");

  CLI::App& count = line.AddCommand(
      noun, {.name = "count", .description = "How many benchmarks a data set has", .examples = {}},
      talks, [flags](const CommandRun&) { return RunCount(*flags); });
  count.add_option("dataset", flags->datasets, "data sets; without any: all")->type_name("DATASET");
  add_json(count, "print one JSON object; null: no end");

  CLI::App& random = line.AddCommand(
      noun,
      {.name = "random",
       .description = "Draw benchmarks: a data set, each as likely, then a member of it",
       .examples = "loopfleet benchmark random --seed 7\n"
                   "loopfleet benchmark random mm64_256_16_range-v0 --seed 7 --count 100"},
      talks, [flags](const CommandRun&) { return RunRandom(*flags); });
  random.add_option("dataset", flags->datasets, "draw from these; without any: from all that end")
      ->type_name("DATASET");
  random.add_option("--seed", flags->seed, "the same seed draws the same (default: a new one)")
      ->type_name("N");
  random.add_option("--count", flags->count, "how many")->type_name("N");
  add_json(random, "print one JSON array");

  CLI::App& show =
      line.AddCommand(noun,
                      {.name = "show",
                       .description = "A benchmark's program and the tree it starts from",
                       .examples = {}},
                      talks, [flags](const CommandRun&) { return RunShow(*flags); });
  show.add_option("benchmark", flags->benchmark, "its URI")->type_name("BENCHMARK")->required();
  add_json(show, "print one JSON value");
}

}  // namespace loopfleet::client
