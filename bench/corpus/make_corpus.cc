// Writes a corpus to standard output:
//   bench_make_corpus matmul > bench/corpus/matmul_walks.jsonl
//   bench_make_corpus kinds  > bench/corpus/kinds_walks.jsonl

#include <fmt/format.h>

#include <string_view>

#include "bench/corpus/corpus.h"
#include "bench/corpus/programs.h"
#include "client/job_line.h"
#include "common/looptree/text/text.h"

namespace loopfleet::bench {
namespace {

void PrintWalks(const CorpusOptions& options) {
  for (const JobSpec& walk : DrawWalks(options)) fmt::print("{}\n", client::JobLine(walk));
}

void PrintMatmuls() {
  for (const int size : {64, 128, 256}) {
    PrintWalks({.benchmark = fmt::format("benchmark://mm-v0/mm{}_{}_{}", size, size, size),
                .seed = static_cast<std::uint64_t>(size)});
  }
}

// Walks for every kind of program.
void PrintKinds() {
  constexpr std::uint32_t kWalks = 32;
  for (const char* uri :
       {"benchmark://conv-v0/conv1_8_20_20__16_8_3_3", "benchmark://mm-v0/mm33_70_100"}) {
    PrintWalks({.benchmark = uri, .walks = kWalks});
  }
  for (const NamedProgram& program : ProgramKinds()) {
    PrintWalks({.ir = looptree::IrTextOf(program.tree),
                .tag = fmt::format("\"{}\"", program.name),
                .walks = kWalks});
  }
}

}  // namespace
}  // namespace loopfleet::bench

int main(int count, char** arguments) {
  const std::string_view which = count == 2 ? arguments[1] : "";
  if (which == "matmul") {
    loopfleet::bench::PrintMatmuls();
  } else if (which == "kinds") {
    loopfleet::bench::PrintKinds();
  } else {
    fmt::print(stderr, "usage: bench_make_corpus matmul|kinds\n");
    return 2;
  }
  return 0;
}
