#include "worker/cpu/cpu_compiler.h"

#include <gtest/gtest.h>

#include <memory>

#include "common/base/random.h"
#include "common/looptree/datasets/benchmark.h"
#include "tests/unit/worker/cpu/kernel_runner.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "tests/unit/worker/portable_c/c_library.h"
#include "worker/cpu/target.h"

namespace loopfleet::worker {
namespace {

using looptree::Annotation;
using looptree::LoopTree;
using looptree::Schedule;

LoopTree Open(const std::string& uri) {
  return looptree::OpenBenchmark(looptree::BenchmarkUri{uri}).value().start;
}

// The tree with `annotation` on every loop over the dim `name`.
LoopTree Annotated(const LoopTree& tree, const std::string& name, Annotation annotation) {
  Schedule schedule = tree.schedule();
  for (auto& node : schedule) {
    for (auto& loop : node.loops) {
      if (tree.program().dims[loop.dim].name == name) loop.annotation = annotation;
    }
  }
  return LoopTree::Build(tree.shared_program(), schedule).value();
}

std::unique_ptr<CpuCompiler> Make(const CpuCompilerOptions& options = {}) {
  return CpuCompiler::Create(options).value();
}

TEST(CpuCompiler, SameTreeSameBytes) {
  const auto first = Make();
  const auto second = Make();
  SplitMix64 random(3);
  std::vector<std::pair<LoopTree, std::string>> made;
  for (const ZooProgram& zoo : ProgramZoo()) {
    for (int i = 0; i < 3; ++i) {
      const LoopTree tree = RandomTree(zoo.program, random);
      const auto kernel = first->Compile(tree);
      if (kernel.has_value()) made.emplace_back(tree, kernel->object);
    }
  }
  ASSERT_GT(made.size(), 30U);
  // In another compiler in reverse order, and again in the first compiler after all others.
  for (std::size_t i = made.size(); i-- > 0;) {
    EXPECT_TRUE(second->Compile(made[i].first)->object == made[i].second) << i;
  }
  EXPECT_TRUE(first->Compile(made[0].first)->object == made[0].second);
}

// `no_effect` is that of the tree itself, even if the object comes from another tree.
TEST(CpuCompiler, KeptObjectsAreWhatWouldHaveBeenMade) {
  const auto plain = Make();
  const auto keeping = Make({.object_cache_bytes = 1 << 20});
  SplitMix64 random(5);
  int compiled = 0;
  for (const ZooProgram& zoo : ProgramZoo()) {
    for (int i = 0; i < 4; ++i) {
      const LoopTree tree = RandomTree(zoo.program, random);
      const auto expected = plain->Compile(tree);
      if (!expected) continue;
      for (int again = 0; again < 2; ++again) {
        const auto kernel = keeping->Compile(tree);
        ASSERT_TRUE(kernel);
        EXPECT_TRUE(*kernel == *expected) << zoo.name << " " << i << " " << again;
      }
      ++compiled;
    }
  }
  EXPECT_GT(compiled, 30);
}

TEST(CpuCompiler, DescribesBuffers) {
  const auto kernel = Make()->Compile(Open("benchmark://mm-v0/mm48_32_16"));
  ASSERT_TRUE(kernel.has_value());
  using Role = BufferSpec::Role;
  const std::vector<BufferSpec> expected = {{Role::kInput, 48 * 16},
                                            {Role::kInput, 16 * 32},
                                            {Role::kOutput, 48 * 32},
                                            {Role::kScratch, 32}};
  EXPECT_EQ(kernel->buffers, expected);
  EXPECT_EQ(kernel->scratch_bytes, 32U * 4);
}

TEST(CpuCompiler, TellsHowWideTheVectorsAreThatItComputesWith) {
  const std::uint32_t widest = ShapeOf(CpuIsa::kHost).lanes * sizeof(float);
  for (const char* uri : {"mm-v0/mm64_64_64", "program-v0/reduce_max64_128"}) {
    const auto kernel = Make()->Compile(Open(std::string("benchmark://") + uri));
    ASSERT_TRUE(kernel.has_value());
    EXPECT_EQ(kernel->vector_bytes, widest) << uri;
  }
}

TEST(CpuCompiler, ThreadHasNoEffectYet) {
  const auto kernel = Make()->Compile(Open("benchmark://loop_tool-cpu-v0/100"));
  ASSERT_TRUE(kernel.has_value());
  EXPECT_EQ(kernel->notes, std::vector<std::string>{"L0 thread"});
}

TEST(CpuCompiler, AnnotationsThatChangeNothingAreNamed) {
  const LoopTree plain = Open("benchmark://mm-v0/mm16_8_64");
  const auto compiler = Make();
  const std::string object = compiler->Compile(plain)->object;

  // n is vectorised anyway, in both nests.
  const auto vectorized = compiler->Compile(Annotated(plain, "n", Annotation::kVectorize));
  EXPECT_TRUE(vectorized->object == object);
  EXPECT_EQ(vectorized->notes, (std::vector<std::string>{"L2 vectorize", "L5 vectorize"}));

  // k is a loop unless it is unrolled.
  const LoopTree shallow = Open("benchmark://mm-v0/mm16_8_4");
  const auto unrolled = compiler->Compile(Annotated(shallow, "k", Annotation::kUnroll));
  EXPECT_TRUE(unrolled->object != compiler->Compile(shallow)->object);
  EXPECT_EQ(unrolled->notes, std::vector<std::string>{});

  // n is written out as vectors, whether it asks or not.
  const auto columns = compiler->Compile(Annotated(plain, "n", Annotation::kUnroll));
  EXPECT_TRUE(columns->object == object);
  EXPECT_EQ(columns->notes,
            (std::vector<std::string>{
                "L2 unroll: a register block unrolls it anyway, as far as registers allow",
                "L5 unroll: its results are written where they are computed"}));

  // A split that was not moved changes nothing, whatever its loops ask for.
  const LoopTree split =
      looptree::Replay(looptree::BenchmarkUri{"benchmark://mm-v0/mm16_8_64"},
                       looptree::ParseActionList("down,down,split_2,unroll").value())
          .value()
          .tree;
  const auto joined = compiler->Compile(split);
  EXPECT_TRUE(joined->object == object);
  EXPECT_EQ(joined->notes,
            (std::vector<std::string>{
                "L2 unroll: a register block unrolls it anyway, as far as registers allow",
                "L3 unroll: a register block unrolls it anyway, as far as registers allow"}));

  // k takes the lanes if asked to.
  const auto lanes = compiler->Compile(Annotated(plain, "k", Annotation::kVectorize));
  EXPECT_TRUE(lanes->object != object);
  EXPECT_EQ(lanes->notes, std::vector<std::string>{});
}

TEST(CpuCompiler, AnnotatedTreesAreRight) {
  KernelRunner runner(CpuIsa::kHost);
  const LoopTree plain = Open("benchmark://mm-v0/mm16_33_21");
  for (const char* dim : {"m", "k", "n"}) {
    for (Annotation annotation :
         {Annotation::kUnroll, Annotation::kVectorize, Annotation::kThread}) {
      EXPECT_EQ(runner.Check(Annotated(plain, dim, annotation)), "") << dim;
    }
  }
  EXPECT_EQ(runner.checked(), 9);
}

TEST(CpuCompiler, UnrollsAsFarAsTheCodeBudgetAllows) {
  const LoopTree plain = Open("benchmark://mm-v0/mm256_16_257");
  const auto compiler = Make();
  const auto kernel = compiler->Compile(Annotated(plain, "k", Annotation::kUnroll));
  ASSERT_TRUE(kernel.has_value());
  ASSERT_EQ(kernel->notes.size(), 1U);
  EXPECT_TRUE(kernel->notes[0].starts_with("L1 unroll: ")) << kernel->notes[0];
  EXPECT_TRUE(kernel->notes[0].ends_with(" of 256")) << kernel->notes[0];
  EXPECT_LT(kernel->object.size(), 64U << 10);
  // All loops, so that no budget holds all of them.
  LoopTree all = plain;
  for (const char* dim : {"m", "k", "n"}) all = Annotated(all, dim, Annotation::kUnroll);
  const auto bounded = compiler->Compile(all);
  ASSERT_TRUE(bounded.has_value());
  EXPECT_LT(bounded->object.size(), 128U << 10);
}

TEST(CpuCompiler, PartlyUnrolledTreesAreRight) {
  KernelRunner runner(CpuIsa::kHost);
  for (const char* uri : {"benchmark://mm-v0/mm33_100_131", "benchmark://program-v0/chain97_203",
                          "benchmark://program-v0/reduce_add70_301"}) {
    const LoopTree plain = Open(uri);
    for (const char* dim : {"m", "k", "n"}) {
      EXPECT_EQ(runner.Check(Annotated(plain, dim, Annotation::kUnroll)), "") << uri << " " << dim;
    }
  }
}

TEST(CpuCompiler, RefusesTooLargeAFootprint) {
  const LoopTree tree = Open("benchmark://mm-v0/mm64_64_64");
  PlanLimits limits;
  limits.footprint_bytes = 3 * 64 * 64 * 4;  // the tensors, but no scratch
  const auto kernel = Make({.limits = limits})->Compile(tree);
  ASSERT_FALSE(kernel.has_value());
  EXPECT_EQ(kernel.error().code, FailureCode::kLimitFootprint);
}

TEST(CpuCompiler, StoresPastTheCachesWhatIsLargerThanThey) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 3);
  const auto n = b.Dim("n", 1600);
  b.Write(b.Apply(looptree::Op::kAdd, {b.Read({m, n}), b.Read({m, n})}, {m, n}), {m, n});
  const LoopTree tree = PlainTree(b.program());
  const std::vector<looptree::Tensor> inputs = SmallIntegers(tree.program(), 5);
  for (const CpuIsa isa : {CpuIsa::kHost, CpuIsa::kAvx2, CpuIsa::kBaseline}) {
    if (!HostRuns(isa)) continue;
    const auto streams = [&](std::int64_t cache_bytes) {
      const auto compiler = Make({.isa = isa, .cache_bytes = cache_bytes});
      std::string problems;
      const auto outputs = KernelRunner(isa).Run(compiler->Compile(tree).value(), inputs, problems);
      EXPECT_EQ(problems, "");
      for (std::size_t i = 0; i < outputs[0].size(); ++i) {
        EXPECT_EQ(outputs[0][i], inputs[0][i] + inputs[1][i]);
      }
      return compiler->CompileToIr(tree)->find("!nontemporal") != std::string::npos;
    };
    EXPECT_TRUE(streams(3 * 4 * 4800 - 1));
    EXPECT_FALSE(streams(3 * 4 * 4800));
  }
}

TEST(CpuCompiler, ShowsItsIr) {
  const auto ir = Make({.isa = CpuIsa::kBaseline})->CompileToIr(Open("benchmark://mm-v0/mm8_8_8"));
  ASSERT_TRUE(ir.has_value());
  EXPECT_NE(ir->find("define void @loopfleet_kernel(ptr"), std::string::npos);
  EXPECT_NE(ir->find("<4 x float>"), std::string::npos);
}

// The assembly shown to people is what runs: the system's tools assemble it to a correct kernel.
TEST(CpuCompiler, AssemblesItsAssembly) {
  const auto compiler = Make({.isa = CpuIsa::kBaseline});
  const LoopTree tree = Open("benchmark://mm-v0/mm7_9_11");
  const auto assembly = compiler->CompileToAssembly(tree);
  ASSERT_TRUE(assembly.has_value());
  EXPECT_NE(assembly->find("loopfleet_kernel:"), std::string::npos);
  const TemporaryFolder folder;
  WriteFile(folder / "kernel.s", *assembly);
  const Status built = Shell("cc -c -o " + (folder / "kernel.o") + " " + (folder / "kernel.s"));
  ASSERT_TRUE(built.has_value()) << built.error().message;
  Kernel kernel = *compiler->Compile(tree);
  kernel.object = ReadFile(folder / "kernel.o");
  const auto inputs = SmallIntegers(tree.program(), 1);
  std::string problems;
  const auto outputs = KernelRunner(CpuIsa::kBaseline).Run(kernel, inputs, problems);
  EXPECT_EQ(problems, "");
  EXPECT_EQ(Difference(outputs, looptree::Evaluate(tree.program(), inputs)), "");
}

TEST(CpuCompiler, StatesItsFacts) {
  const CompilerFacts facts = CpuCompilerFacts();
  EXPECT_EQ(facts.llvm.substr(0, 3), "19.");
  EXPECT_EQ(facts.tier, "general");
  EXPECT_EQ(facts.revision, kLoweringRevision);
}

}  // namespace
}  // namespace loopfleet::worker
