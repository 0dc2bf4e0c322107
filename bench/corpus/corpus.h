#pragma once
// The corpus that rates are measured on: random legal walks, seeded, distinct as trees, committed
// as job lines in bench/corpus. make_corpus writes it; nothing else should.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/job/job_spec.h"

namespace loopfleet::bench {

struct CorpusOptions {
  std::string benchmark;
  std::string ir;   // instead of a benchmark
  std::string tag;  // JSON text, for each job
  std::uint32_t walks = 256;
  std::uint32_t max_actions = 20;
  std::uint64_t seed = 1;
};
// Aborts on a benchmark that does not exist: it is named in the source. Gives fewer walks where
// the program has not so many trees within reach.
std::vector<JobSpec> DrawWalks(const CorpusOptions& options);

Result<std::vector<JobSpec>> ReadCorpus(const std::filesystem::path& file);

}  // namespace loopfleet::bench
