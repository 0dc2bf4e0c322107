#pragma once
// The corpus that rates are measured on: seeded random legal walks with distinct trees, committed
// as job lines in bench/corpus. Only make_corpus writes it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/job/job_spec.h"

namespace loopfleet::bench {

// The actions that walks are drawn from.
enum class ActionPool {
  kReorder,  // moves, swaps and splits, under the rules `structural`
  kAgent,    // the sixteen of the original, in turns under `structural` and `loop_nest`
};

struct CorpusOptions {
  std::string benchmark;
  std::string ir;   // replaces `benchmark` unless empty
  std::string tag;  // JSON text, attached to each job
  std::uint32_t walks = 256;
  std::uint32_t max_actions = 20;
  std::uint64_t seed = 1;
  ActionPool pool = ActionPool::kReorder;
};
// Aborts if the benchmark does not exist. Returns fewer than `walks` if the program has fewer
// reachable trees.
std::vector<JobSpec> DrawWalks(const CorpusOptions& options);

Result<std::vector<JobSpec>> ReadCorpus(const std::filesystem::path& file);

}  // namespace loopfleet::bench
