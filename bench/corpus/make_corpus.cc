// Writes a corpus to standard output:
//   bench_make_corpus matmul > bench/corpus/matmul_walks.jsonl
//   bench_make_corpus kinds  > bench/corpus/kinds_walks.jsonl
//   bench_make_corpus agent  > bench/corpus/agent_walks.jsonl

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

// The test set of LoopTune: no agent was trained on these.
constexpr const char* kLoopTuneTest[] = {
    "mm112_208_256", "mm112_224_128", "mm112_256_64",  "mm112_256_80",  "mm128_160_224",
    "mm160_224_192", "mm176_128_160", "mm176_144_160", "mm176_192_160", "mm192_192_80",
    "mm192_256_256", "mm208_128_256", "mm208_160_80",  "mm208_80_224",  "mm224_112_176",
    "mm224_208_224", "mm224_224_256", "mm224_64_240",  "mm240_208_144", "mm256_160_112",
    "mm64_240_64",   "mm80_176_224",  "mm96_160_256",  "mm96_224_240",  "mm96_240_128"};
constexpr const char* kConvolutions[] = {
    "conv1_32_56_56__32_32_3_3", "conv1_64_56_56__64_64_3_3", "conv1_128_56_56__1_128_3_3",
    "conv1_32_112_112__64_32_3_3", "conv32_32_56_56__1_32_3_3"};
constexpr const char* kPrograms[] = {
    "positive_product33_48_64", "mmbias96_80_64",    "twomm64_48_64_80", "chain256_300",
    "reduce_add300_200",        "reduce_max257_129", "shift200_256",     "conv1d4096_5"};

// Uniform random legal walks over the whole action space: what an agent that knows nothing submits.
void PrintAgentWalks() {
  auto print = [seed = std::uint64_t{0}](const char* group, const std::string& uri,
                                         std::uint32_t walks) mutable {
    PrintWalks({.benchmark = "benchmark://" + uri,
                .tag = fmt::format("\"{}\"", group),
                .walks = walks,
                .seed = ++seed,
                .pool = ActionPool::kAgent});
  };
  for (const char* name : kLoopTuneTest) print("looptune", std::string("mm-v0/") + name, 20);
  print("mm64", "mm-v0/mm64_64_64", 300);
  print("mm512", "mm-v0/mm512_512_512", 120);
  print("mm1024", "mm-v0/mm1024_1024_1024", 60);
  for (const char* name : kPrograms) print("program", std::string("program-v0/") + name, 25);
  for (const char* name : kConvolutions) print("conv", std::string("conv_train-v0/") + name, 12);
}

}  // namespace
}  // namespace loopfleet::bench

int main(int count, char** arguments) {
  const std::string_view which = count == 2 ? arguments[1] : "";
  if (which == "matmul") {
    loopfleet::bench::PrintMatmuls();
  } else if (which == "kinds") {
    loopfleet::bench::PrintKinds();
  } else if (which == "agent") {
    loopfleet::bench::PrintAgentWalks();
  } else {
    fmt::print(stderr, "usage: bench_make_corpus matmul|kinds|agent\n");
    return 2;
  }
  return 0;
}
