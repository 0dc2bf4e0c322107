#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/outcome_text.h"
#include "client/cli/text/table.h"
#include "client/job_line.h"
#include "client/outcome_json.h"
#include "common/base/enum_names.h"
#include "common/base/random.h"
#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/job/task.h"
#include "common/llvm_passes/program_datasets.h"
#include "common/llvm_passes/program_uri.h"
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

// A data set of loops or of programs.
struct DataSet {
  std::string_view prefix;
  std::string_view description;
  std::uint64_t size = 0;  // 0: cannot be enumerated
  std::string_view example;
  std::function<std::string(std::uint64_t)> member;  // by its index < size
};

std::vector<DataSet> LoopDataSets() {
  std::vector<DataSet> all;
  for (const looptree::Dataset& one : looptree::Datasets()) {
    all.push_back({one.prefix, one.description, one.size, one.example,
                   [&one](std::uint64_t index) { return looptree::DatasetMember(one, index); }});
  }
  return all;
}

std::vector<DataSet> AllDataSets() {
  std::vector<DataSet> all = LoopDataSets();
  for (const passes::ProgramDataset& one : passes::ProgramDatasets()) {
    all.push_back({one.prefix, one.description, one.size, one.example,
                   [&one](std::uint64_t index) { return passes::ProgramMember(one, index); }});
  }
  return all;
}

std::string SizeText(const DataSet& set) {
  return set.size == 0 ? "any" : std::to_string(set.size);
}

// With or without its scheme and the slash at its end.
std::string ShortName(std::string_view prefix) {
  const std::size_t scheme = prefix.find("://");
  std::string name(scheme == prefix.npos ? prefix : prefix.substr(scheme + 3));
  if (name.ends_with('/')) name.pop_back();
  return name;
}

looptree::Checked<DataSet> FindDataSet(const std::string& name) {
  const std::vector<DataSet> all = AllDataSets();
  const std::string wanted = name.ends_with('/') ? name : name + "/";
  std::vector<std::string> names;
  for (const DataSet& set : all) {
    names.push_back(ShortName(set.prefix));
    if (wanted == set.prefix || wanted == names.back() + "/") return set;
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return looptree::Reject(
      looptree::RejectionCode::kInvalidBenchmark,
      fmt::format("unknown dataset '{}'{}", name, NearestSuffix(ShortName(wanted), known)));
}

looptree::Checked<std::vector<DataSet>> NamedDataSets(const std::vector<std::string>& names) {
  std::vector<DataSet> sets;
  for (const std::string& name : names) {
    LF_TRY(DataSet set, FindDataSet(name));
    sets.push_back(std::move(set));
  }
  return sets;
}

looptree::Rejection Uncountable(const DataSet& set) {
  return {
      .code = looptree::RejectionCode::kInvalidBenchmark,
      .message = fmt::format("{} has no end to list or draw from: name a member, for example {}",
                             set.prefix, set.example),
      .action_index = {}};
}

int ListDataSets(const BenchmarkFlags& flags) {
  const std::vector<DataSet> all = AllDataSets();
  if (flags.json) {
    Json array = Json::array();
    for (const DataSet& set : all) {
      array.push_back({{"prefix", set.prefix},
                       {"description", set.description},
                       {"size", set.size == 0 ? Json(nullptr) : Json(set.size)},
                       {"example", set.example}});
    }
    fmt::print("{}\n", Dump(array));
    return kExitOk;
  }
  Table table({"DATASET", "SIZE", "DESCRIPTION", "EXAMPLE"});
  for (const DataSet& set : all) {
    table.Add({std::string(set.prefix), SizeText(set), std::string(set.description),
               std::string(set.example)});
  }
  fmt::print("{}", table.Text());
  return kExitOk;
}

// Prints each member as it is generated: a data set may have eight million.
int ListMembers(const DataSet& set, const BenchmarkFlags& flags) {
  if (set.size == 0) return Refuse(Uncountable(set));
  const std::uint64_t begin = std::min(flags.offset, set.size);
  const std::uint64_t left = set.size - begin;
  const std::uint64_t end = begin + std::min(flags.limit.value_or(left), left);
  if (flags.json) fmt::print("[");
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::string uri = set.member(i);
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
  if (flags.datasets.empty()) return ListDataSets(flags);
  const auto set = FindDataSet(flags.datasets.front());
  if (!set) return Refuse(set.error());
  return ListMembers(*set, flags);
}

int RunCount(const BenchmarkFlags& flags) {
  auto sets = NamedDataSets(flags.datasets);
  if (!sets) return Refuse(sets.error());
  if (flags.datasets.empty()) sets = AllDataSets();
  Json json = Json::object();
  for (const DataSet& set : *sets) {
    json[std::string(set.prefix)] = set.size == 0 ? Json(nullptr) : Json(set.size);
  }
  if (flags.json) {
    fmt::print("{}\n", Dump(json));
  } else if (sets->size() == 1) {
    fmt::print("{}\n", SizeText(sets->front()));
  } else {
    Table table({"DATASET", "SIZE"});
    for (const DataSet& set : *sets) table.Add({std::string(set.prefix), SizeText(set)});
    fmt::print("{}", table.Text());
  }
  return kExitOk;
}

// Without names from the data sets of loops, as always: the same seed draws the same.
int RunRandom(const BenchmarkFlags& flags) {
  auto sets = NamedDataSets(flags.datasets);
  if (!sets) return Refuse(sets.error());
  for (const DataSet& set : *sets) {
    if (set.size == 0) return Refuse(Uncountable(set));
  }
  if (flags.datasets.empty()) {
    sets = LoopDataSets();
    std::erase_if(*sets, [](const DataSet& set) { return set.size == 0; });
  }
  const std::uint64_t seed = flags.seed ? *flags.seed : OsRandom64();
  if (!flags.seed) fmt::print(stderr, "seed {}\n", seed);
  SplitMix64 random(seed);
  if (flags.json) fmt::print("[");
  for (std::uint64_t i = 0; i < flags.count; ++i) {
    const DataSet& set = (*sets)[random.Below(sets->size())];
    const std::string uri = set.member(random.Below(set.size));
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

// The program itself is made or found by a worker.
int ShowProgram(const BenchmarkFlags& flags, const std::string& uri) {
  if (const auto program = passes::ParseProgramUri(uri); !program) {
    return Refuse({.code = looptree::RejectionCode::kInvalidBenchmark,
                   .message = program.error().message,
                   .action_index = {}});
  }
  const passes::ProgramDataset& set = passes::DatasetOfProgram(uri);
  const std::string_view kind = EnumName(TaskKind::kPasses);
  if (flags.json) {
    const Json json = {{"benchmark", uri},
                       {"kind", kind},
                       {"dataset", set.prefix},
                       {"description", set.description}};
    fmt::print("{}\n", Dump(json));
    return kExitOk;
  }
  fmt::print("{}\n{}\nits size: `loopfleet eval {}`; its IR: with --observe Ir --json\n", uri,
             set.description, uri);
  return kExitOk;
}

int RunShow(const BenchmarkFlags& flags) {
  const looptree::BenchmarkUri uri{FullUri(flags.benchmark)};
  if (TaskOf(uri).kind == TaskKind::kPasses) return ShowProgram(flags, uri.text);
  const auto benchmark = looptree::OpenBenchmark(uri);
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
                                "loopfleet benchmark list small-v0\n"
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
  random
      .add_option("dataset", flags->datasets,
                  "draw from these; without any: from all of loops that end")
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
