// Writes the corpus to standard output: bench_make_corpus > bench/corpus/matmul_walks.jsonl

#include <fmt/format.h>

#include "bench/corpus.h"
#include "client/job_line.h"

int main() {
  using namespace loopfleet;
  for (const int size : {64, 128, 256}) {
    const auto walks = bench::DrawWalks(
        {.benchmark = fmt::format("benchmark://mm-v0/mm{}_{}_{}", size, size, size),
         .seed = static_cast<std::uint64_t>(size)});
    for (const JobSpec& walk : walks) fmt::print("{}\n", client::JobLine(walk));
  }
  return 0;
}
