#include "worker/llvm_env/pass_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "common/llvm_passes/pass_action.h"
#include "tests/unit/worker/llvm_env/pass_process_fixture.h"

namespace loopfleet::worker {
namespace {

using passes::Observation;
using Reason = PassFailure::Reason;

// %p can be promoted, and the addition vanishes.
Bitcode SmallProgram() {
  return Assembled(R"(
define i32 @main(i32 %x) {
  %p = alloca i32
  store i32 %x, ptr %p
  %y = load i32, ptr %p
  %z = add i32 %y, 0
  ret i32 %z
})");
}

std::vector<std::string> RandomPasses(std::mt19937& random, std::size_t count) {
  const auto actions = passes::ActionsOf(passes::ActionSpace::kDistinct);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i)
    texts.emplace_back(actions[random() % actions.size()].text);
  return texts;
}

class PassProcessTest : public PassProcessFixture {};

TEST_F(PassProcessTest, ValuesAreThoseAskedForInTheirOrder) {
  const BatchResult batch = Run(
      SmallProgram(), {{.passes = {"function(mem2reg)", "no-op-module", "function(instsimplify)"},
                        .wanted = {{Observation::kIrInstructionCount, {3, 0, 1}},
                                   {Observation::kIrInstructionCountOz, {3}},
                                   {Observation::kInstCount, {3}}}}});
  EXPECT_EQ(batch.instruction_count, 5U);
  EXPECT_EQ(batch.module_hash.size(), 64U);
  const EpisodeResult& result = batch.episodes[0];
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(result.changed, (std::vector<bool>{true, false, true}));
  ASSERT_EQ(result.values.size(), 5U);
  const auto expect = [&](std::size_t i, Observation observation, std::uint32_t step,
                          std::int64_t value) {
    EXPECT_EQ(result.values[i],
              (StepValue{.observation = observation, .step = step, .value = value}));
  };
  expect(0, Observation::kIrInstructionCount, 3, 1);
  expect(1, Observation::kIrInstructionCount, 0, 5);
  expect(2, Observation::kIrInstructionCount, 1, 2);
  expect(3, Observation::kIrInstructionCountOz, 3, 1);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(result.values[4].value).size(), 70U);
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(PassProcessTest, EveryObservationCanBeAskedForAtEveryStep) {
  Episode episode{.passes = {"function(mem2reg)", "default<Oz>"}, .wanted = {}};
  for (const passes::ObservationInfo& info : passes::ObservationTable()) {
    episode.wanted.push_back({info.observation, StepsTo(2)});
  }
  const EpisodeResult result = Run(SmallProgram(), {episode}).episodes[0];
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(result.values.size(), passes::ObservationTable().size() * 3);
}

TEST_F(PassProcessTest, APassThatCrashesIsNamedAndCostsNoOtherEpisode) {
  const std::vector<Episode> episodes = {
      {.passes = {"function(scalarizer)"}, .wanted = {{Observation::kIrInstructionCount, {0, 1}}}},
      {.passes = {"function(dce)", "function(scalarizer)", "function(dce)"},
       .wanted = {{Observation::kIrInstructionCount, StepsTo(3)}}},
      {.passes = {"function(dce)", "function(gvn)"},
       .wanted = {{Observation::kIrInstructionCount, StepsTo(2)}}}};
  const BatchResult batch = Run(StressProgram(1), episodes);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const auto& failure = batch.episodes[i].failure;
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->reason, Reason::kCrashed);
    EXPECT_EQ(failure->signal, SIGSEGV);
    EXPECT_EQ(failure->pass_index, i);
    EXPECT_NE(failure->message.find("function(scalarizer) was ended by SIGSEGV"),
              std::string::npos);
    // What came before is still there.
    EXPECT_EQ(batch.episodes[i].values.size(), i + 1);
    EXPECT_EQ(batch.episodes[i].changed.size(), i);
  }
  EXPECT_FALSE(batch.episodes[2].failure);
  EXPECT_EQ(batch.episodes[2].values.size(), 3U);
  EXPECT_TRUE(restarts_.empty());
  const Failure failure = ToFailure(*batch.episodes[1].failure);
  EXPECT_EQ(failure.code, FailureCode::kCompileError);
  EXPECT_EQ(failure.action_index, 1U);
  EXPECT_EQ(failure.signal, SIGSEGV);
  EXPECT_TRUE(failure.message.starts_with("PASS_CRASHED: "));
}

TEST_F(PassProcessTest, AFatalErrorOfLlvmIsACrashWithItsLastWords) {
  const BatchResult batch = Run(
      CsmithProgram(0),
      {{.passes = {"function(instcombine)"}, .wanted = {}},
       {.passes = {"function(instcombine<max-iterations=1;no-use-loop-info;no-verify-fixpoint>)"},
        .wanted = {}},
       {.passes = {}, .wanted = {{Observation::kIrInstructionCountOz, {0}}}}});
  const auto& failure = batch.episodes[0].failure;
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->reason, Reason::kCrashed);
  EXPECT_EQ(failure->pass_index, 0U);
  EXPECT_NE(failure->message.find("exited with code 1: LLVM ERROR: Instruction Combining did not "
                                  "reach a fixpoint"),
            std::string::npos)
      << failure->message;
  EXPECT_FALSE(batch.episodes[1].failure);
  EXPECT_EQ(std::get<std::int64_t>(batch.episodes[2].values.at(0).value), 681);
}

TEST_F(PassProcessTest, ATextThatLlvmDoesNotKnowIsAnInvalidAction) {
  const BatchResult batch =
      Run(SmallProgram(),
          {{.passes = {"function(dce)", "function(simplifycfg<bonus>)"}, .wanted = {}}});
  ASSERT_TRUE(batch.episodes[0].failure);
  EXPECT_EQ(batch.episodes[0].failure->reason, Reason::kUnknownPass);
  EXPECT_EQ(batch.episodes[0].failure->pass_index, 1U);
  EXPECT_EQ(ToFailure(*batch.episodes[0].failure).code, FailureCode::kInvalidAction);
}

TEST_F(PassProcessTest, TheTimeOfAPassIsLimited) {
  Start({.pass_processor_time = std::chrono::milliseconds(150)});
  const std::string slow = "default<O3>,default<O3>,default<O3>,default<O3>,default<O3>";
  const BatchResult batch =
      Run(CsmithProgram(0), {{.passes = {"function(dce)", slow}, .wanted = {}}});
  ASSERT_TRUE(batch.episodes[0].failure);
  EXPECT_EQ(batch.episodes[0].failure->reason, Reason::kTimeout)
      << batch.episodes[0].failure->message;
  EXPECT_EQ(batch.episodes[0].failure->pass_index, 1U);
  EXPECT_EQ(ToFailure(*batch.episodes[0].failure).code, FailureCode::kCompileTimeout);
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(PassProcessTest, TheTimeOfAnEpisodeIsLimited) {
  Start({.episode_wall_time = std::chrono::milliseconds(40)});
  const BatchResult batch =
      Run(CsmithProgram(0), {{.passes = std::vector<std::string>(1000, "default<O3>"),
                              .wanted = {{Observation::kIrInstructionCount, {0}}}}});
  ASSERT_TRUE(batch.episodes[0].failure);
  EXPECT_EQ(batch.episodes[0].failure->reason, Reason::kTimeout);
  EXPECT_EQ(batch.episodes[0].values.size(), 1U);
}

TEST_F(PassProcessTest, ABatchThatTakesTooLongEndsWithWhatIsKnown) {
  Start({}, {.batch_limit = std::chrono::milliseconds(2000)});
  const Episode episode{.passes = std::vector<std::string>(100'000, "default<O3>"),
                        .wanted = {{Observation::kIrInstructionCount, {1}}}};
  const BatchResult batch = Run(StressProgram(3), {episode});
  ASSERT_TRUE(batch.episodes[0].failure);
  EXPECT_EQ(batch.episodes[0].failure->reason, Reason::kTimeout);
  EXPECT_EQ(batch.episodes[0].values.size(), 1U);
  EXPECT_GT(batch.episodes[0].changed.size(), 1U);
  EXPECT_EQ(restarts_, std::vector{ExitReason::Cause::kTimeout});
  EXPECT_FALSE(
      Run(SmallProgram(), {{.passes = {"function(dce)"}, .wanted = {}}}).episodes[0].failure);
}

TEST_F(PassProcessTest, AModuleThatGrowsTooMuchEndsItsEpisode) {
  Start({.growth = 1, .instructions = 1});
  // reg2mem adds loads and stores.
  const BatchResult batch = Run(Assembled(R"(
define i32 @f(i1 %c, i32 %x) {
  br i1 %c, label %a, label %b
a:
  br label %b
b:
  %y = phi i32 [ %x, %0 ], [ 7, %a ]
  ret i32 %y
})"),
                                {{.passes = {"function(reg2mem)"}, .wanted = {}}});
  ASSERT_TRUE(batch.episodes[0].failure);
  EXPECT_EQ(batch.episodes[0].failure->reason, Reason::kModuleTooLarge);
  EXPECT_EQ(batch.episodes[0].failure->pass_index, 0U);
  EXPECT_EQ(ToFailure(*batch.episodes[0].failure).code, FailureCode::kCompileOom);
}

// Wherever memory ends, in reading the program, in a pass or in a fork, the end is typed.
TEST_F(PassProcessTest, MemoryIsLimited) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "memory cannot be limited under a sanitizer";
#endif
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    text += fmt::format(R"(
define i32 @f{0}(ptr %p, i32 %n) {{
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %next, %loop ]
  %at = getelementptr i32, ptr %p, i32 %i
  %x = load i32, ptr %at
  %y = mul i32 %x, {0}
  store i32 %y, ptr %at
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret i32 %y
}})",
                        i);
  }
  const Bitcode program = Assembled(text);
  std::size_t pass_failures = 0;
  for (std::uint64_t limit = std::uint64_t{8} << 20; limit < std::uint64_t{1} << 30;
       limit += limit / 3) {
    Start({}, {}, limit);
    const auto batch = process_->Run(
        program, std::vector<Episode>{{.passes = {"no-op-module", "default<O3>"}, .wanted = {}}});
    if (!batch) {
      EXPECT_EQ(batch.error().code, FailureCode::kInvalidBenchmark) << limit;
      continue;
    }
    const auto& failure = batch->episodes[0].failure;
    if (!failure) break;
    EXPECT_EQ(failure->reason, Reason::kOutOfMemory) << limit << " " << failure->message;
    EXPECT_EQ(ToFailure(*failure).code, FailureCode::kCompileOom);
    ++pass_failures;
  }
  EXPECT_GT(pass_failures, 0U);
}

// There is no such instruction: the code generator gives up, and only who asked for code has a
// loss.
TEST_F(PassProcessTest, AnObservationThatCrashesIsTheLossOfItsEpisodeOnly) {
  const Bitcode program = Assembled(R"(
define void @f() {
  call void asm sideeffect "no such instruction", ""()
  ret void
})");
  const BatchResult batch =
      Run(program, {{.passes = {"function(dce)", "function(gvn)"},
                     .wanted = {{Observation::kIrInstructionCount, StepsTo(2)},
                                {Observation::kObjectTextSizeBytes, {1}}}},
                    {.passes = {"function(dce)", "function(gvn)"},
                     .wanted = {{Observation::kIrInstructionCount, StepsTo(2)}}}});
  ASSERT_TRUE(batch.episodes[0].failure);
  EXPECT_EQ(batch.episodes[0].failure->pass_index, 0U);
  EXPECT_EQ(batch.episodes[0].values.size(), 1U);
  EXPECT_FALSE(batch.episodes[1].failure);
  EXPECT_EQ(batch.episodes[1].values.size(), 3U);
}

TEST_F(PassProcessTest, WhatIsNoProgramIsAnInvalidBenchmark) {
  const auto result = process_->Run(std::make_shared<const std::string>("junk"), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, FailureCode::kInvalidBenchmark);
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(PassProcessTest, AHostThatStandsStillWhileItReadsDoesNotCondemnTheProgram) {
  const Bitcode program = CsmithProgram(0);
  Start({.pass_wall_time = std::chrono::milliseconds(1)});
  const auto result = process_->Run(program, std::vector<Episode>{{.passes = {}, .wanted = {}}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, FailureCode::kDeviceFault) << result.error().message;
}

TEST_F(PassProcessTest, BatchesEqualEpisodesOneByOneAndRepeat) {
  std::mt19937 random(7);
  for (const std::uint32_t seed : {2, 4}) {
    const Bitcode program = StressProgram(seed);
    std::vector<Episode> episodes;
    const std::vector<std::string> prefix = RandomPasses(random, 6);
    for (std::size_t i = 0; i < 12; ++i) {
      // Prefixes of all lengths, then passes of their own.
      std::vector<std::string> texts(prefix.begin(),
                                     prefix.begin() + static_cast<std::ptrdiff_t>(i % 7));
      for (const std::string& text : RandomPasses(random, 4)) texts.push_back(text);
      episodes.push_back({.passes = texts,
                          .wanted = {{Observation::kModuleHash, StepsTo(texts.size())},
                                     {Observation::kAutophase, StepsTo(texts.size())},
                                     {Observation::kIrInstructionCountO3, {0}}}});
    }
    const BatchResult batch = Run(program, episodes);
    const BatchResult again = Run(program, episodes);
    for (std::size_t i = 0; i < episodes.size(); ++i) {
      EXPECT_EQ(batch.episodes[i], again.episodes[i]) << seed << " " << i;
      EXPECT_EQ(batch.episodes[i], Run(program, {episodes[i]}).episodes[0]) << seed << " " << i;
    }
    Start({});  // a third run, in other processes
    EXPECT_EQ(batch.episodes, Run(program, episodes).episodes);
  }
}

// The size of the code is not computed again after a pass that changes nothing.
TEST_F(PassProcessTest, ValuesAreThoseOfAWalkThatObservesNothingBefore) {
  Start({}, {.heads = 0});
  std::mt19937 random(13);
  const Bitcode program = CsmithProgram(5);
  std::vector<std::string> passes = RandomPasses(random, 30);
  passes.insert(passes.begin() + 5, "function(instnamer)");  // names values and says nothing of it
  const auto wanted = [](const std::vector<std::uint32_t>& steps) {
    std::vector<Wanted> all;
    for (const passes::ObservationInfo& info : passes::ObservationTable()) {
      if (info.baseline == passes::Baseline::kNone) all.push_back({info.observation, steps});
    }
    return all;
  };
  const EpisodeResult whole =
      Run(program, {{.passes = passes, .wanted = wanted(StepsTo(passes.size()))}}).episodes[0];
  ASSERT_FALSE(whole.failure) << whole.failure->message;
  EXPECT_GT(std::ranges::count(whole.changed, false), 5);
  for (std::uint32_t step = 0; step <= passes.size(); ++step) {
    const Episode until{.passes = {passes.begin(), passes.begin() + step},
                        .wanted = wanted({step})};
    const EpisodeResult alone = Run(program, {until}).episodes[0];
    EXPECT_EQ(alone.values.size(), until.wanted.size());
    for (const StepValue& fresh : alone.values) {
      EXPECT_NE(std::ranges::find(whole.values, fresh), whole.values.end())
          << step << " " << InfoOf(fresh.observation).name;
    }
  }
}

// LLVM's reassociate does so here: what is kept must not be believed of it.
TEST_F(PassProcessTest, APassThatChangesTheModuleAndDoesNotSaySoIsFoundOut) {
  Start({}, {.heads = 0});
  const Bitcode program = StressProgram(53);
  const std::vector<std::string> passes = {
      "function(ee-instrument<post-inline>)",
      "function(lcssa)",
      "function(lower-matrix-intrinsics)",
      "function(dse)",
      "function(dce)",
      "function(loop-vectorize<no-interleave-forced-only;no-vectorize-forced-only>)",
      "function(reassociate)"};
  const auto look = [&](std::vector<std::uint32_t> steps) {
    std::vector<Wanted> wanted;
    for (const Observation each : {Observation::kModuleHash, Observation::kObjectTextSizeBytes,
                                   Observation::kObjectTextSizeO2Bytes}) {
      wanted.push_back({each, steps});
    }
    return Run(program, {{.passes = passes, .wanted = wanted}}).episodes[0];
  };
  const EpisodeResult both = look({6, 7}), last = look({7});
  ASSERT_EQ(both.values.size(), 6U);
  EXPECT_FALSE(both.changed.back());
  EXPECT_NE(both.values[0].value, both.values[1].value) << "LLVM says it now: find another case";
  EXPECT_EQ(last.values, (std::vector<StepValue>{both.values[1], both.values[3], both.values[5]}));
}

TEST_F(PassProcessTest, RandomPassesOnStressProgramsEachEndTyped) {
  std::mt19937 random(1);
  std::size_t crashes = 0;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const Episode episode{.passes = RandomPasses(random, 20),
                          .wanted = {{Observation::kIrInstructionCount, StepsTo(20)}}};
    const EpisodeResult result = Run(StressProgram(seed), {episode}).episodes[0];
    if (!result.failure) {
      EXPECT_EQ(result.values.size(), 21U) << seed;
      continue;
    }
    ++crashes;
    ASSERT_TRUE(result.failure->pass_index) << seed;
    EXPECT_EQ(result.values.size(), *result.failure->pass_index + 1) << seed;
    EXPECT_NE(result.failure->reason, Reason::kNoProcess) << result.failure->message;
    EXPECT_NE(result.failure->reason, Reason::kForbiddenCall) << result.failure->message;
  }
  EXPECT_LT(crashes, 20U);
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(PassProcessTest, DamagedBitcodeIsATypedError) {
  std::mt19937 random(5);
  const Bitcode whole = StressProgram(1);
  std::size_t refused = 0;
  for (int i = 0; i < 100; ++i) {
    std::string bytes = *whole;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (i % 10 == 0) bytes.resize(random() % bytes.size());
    const auto result =
        process_->Run(std::make_shared<const std::string>(bytes),
                      std::vector<Episode>{{.passes = {"function(dce)"}, .wanted = {}}});
    if (result) continue;  // still a program
    ++refused;
    EXPECT_EQ(result.error().code, FailureCode::kInvalidBenchmark) << result.error().message;
    EXPECT_FALSE(result.error().message.empty());
  }
  EXPECT_GT(refused, 10U);
  EXPECT_FALSE(Run(whole, {{.passes = {"function(dce)"}, .wanted = {}}}).episodes[0].failure);
}

TEST_F(PassProcessTest, ManyProgramsTakeTurns) {
  std::vector<Bitcode> programs;
  for (std::uint32_t seed = 1; seed <= 6; ++seed) programs.push_back(StressProgram(seed));
  std::vector<std::string> hashes;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const BatchResult batch = Run(programs[i], {{.passes = {"function(dce)"}, .wanted = {}}});
      if (round == 0) hashes.push_back(batch.module_hash);
      EXPECT_EQ(batch.module_hash, hashes[i]);
    }
  }
  EXPECT_TRUE(restarts_.empty());
}

}  // namespace
}  // namespace loopfleet::worker
