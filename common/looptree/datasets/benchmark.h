#pragma once
// Benchmark: the start of a walk, named by a URI or given as IR text. It consists of a program, the
// tree to start from, and the dialect of its actions.

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
// What a request gives: a URI, or a whole program.
using Source = std::variant<BenchmarkUri, IrText>;

struct Benchmark {
  Dialect dialect = Dialect::kAgent;
  Target target = Target::kCpu;
  LoopTree start;
};

// kInvalidBenchmark names the invalid part, and the nearest valid dataset or the valid range.
Checked<Benchmark> OpenBenchmark(const Source& source, const Limits& limits = {});

// A named dataset, for listing, counting and drawing.
struct Dataset {
  std::string_view prefix;       // "benchmark://mm64_256_16_range-v0/"
  std::string_view description;  // one line
  std::uint64_t size = 0;        // number of members; 0: cannot be enumerated
  std::string_view example;      // a valid URI
};
std::span<const Dataset> Datasets();
// The dataset called "mm-v0", "benchmark://mm-v0" or "benchmark://mm-v0/"; else kInvalidBenchmark
// with the nearest name.
Checked<const Dataset*> FindDataset(std::string_view name);
// The URI of member `index` < size, in the dataset's own order.
std::string DatasetMember(const Dataset& dataset, std::uint64_t index);
// Draws one of the datasets that can be enumerated, uniformly, then one of its members, uniformly.
// The same generator state gives the same benchmark on every machine.
std::string RandomBenchmark(std::span<const Dataset> datasets, SplitMix64& random);

}  // namespace loopfleet::looptree
