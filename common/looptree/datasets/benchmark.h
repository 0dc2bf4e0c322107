#pragma once
// Benchmark: where a walk starts. Named by a URI or given as IR text; either way it is a program,
// the tree it starts from, and the dialect its actions are in.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/random.h"
#include "common/looptree/program/rejection.h"
#include "common/looptree/tree/dialect.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

struct BenchmarkUri {
  std::string text;
  friend bool operator==(const BenchmarkUri&, const BenchmarkUri&) = default;
};
struct IrText {
  std::string text;
  friend bool operator==(const IrText&, const IrText&) = default;
};
// What a request names: a URI, or a whole program.
using Source = std::variant<BenchmarkUri, IrText>;

struct Benchmark {
  Dialect dialect = Dialect::kAgent;
  Target target = Target::kCpu;
  LoopTree start;
};

// kInvalidBenchmark names the offending part and the nearest valid dataset or the valid range.
Checked<Benchmark> OpenBenchmark(const Source& source, const Limits& limits = {});

// A dataset known by name: for listing, counting and drawing.
struct Dataset {
  std::string_view prefix;       // "benchmark://mm64_256_16_range-v0/"
  std::string_view description;  // one line
  std::uint64_t size = 0;        // how many members; 0: unbounded by enumeration
  std::string_view example;      // a valid URI
};
std::span<const Dataset> Datasets();
// The dataset called "mm-v0", "benchmark://mm-v0" or "benchmark://mm-v0/"; else kInvalidBenchmark
// with the nearest name.
Checked<const Dataset*> FindDataset(std::string_view name);
// The URI of member `index` < size, in the dataset's own order.
std::string DatasetMember(const Dataset& dataset, std::uint64_t index);
// A dataset of those that can be counted, each as likely, and a member of it, each as likely. The
// same generator state gives the same benchmark everywhere.
std::string RandomBenchmark(std::span<const Dataset> datasets, SplitMix64& random);

}  // namespace loopfleet::looptree
