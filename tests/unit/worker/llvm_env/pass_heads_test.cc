// States kept between jobs: results are those of a walk from the program on, whatever happens.

#include "worker/llvm_env/pass_heads.h"

#include <random>

#include "common/llvm_passes/pass_action.h"
#include "tests/unit/worker/llvm_env/pass_process_fixture.h"

namespace loopfleet::worker {
namespace {

using passes::Observation;

class PassHeadsTest : public PassProcessFixture {
 protected:
  // What an environment asks after each of the passes. The baseline is known after the first job.
  static Episode StepOf(const std::vector<std::string>& passes, std::size_t count) {
    const auto last = static_cast<std::uint32_t>(count);
    return {.passes = {passes.begin(), passes.begin() + static_cast<std::ptrdiff_t>(count)},
            .wanted = {{Observation::kModuleHash, {last}},
                       {Observation::kAutophase, {last}},
                       {Observation::kObjectTextSizeBytes, {last}},
                       {Observation::kIrInstructionCountOz, {last}}}};
  }
  std::vector<EpisodeResult> Walk(const Bitcode& program, const std::vector<std::string>& passes) {
    std::vector<EpisodeResult> results;
    for (std::size_t count = 0; count <= passes.size(); ++count) {
      results.push_back(Step(program, passes, count));
    }
    return results;
  }
  EpisodeResult Step(const Bitcode& program, const std::vector<std::string>& passes,
                     std::size_t count) {
    return Run(program, {StepOf(passes, count)}).episodes[0];
  }
  std::vector<EpisodeResult> TwoStepsOfAHead(const Bitcode& program,
                                             const std::vector<std::string>& passes) {
    Step(program, passes, 0);
    std::vector<EpisodeResult> steps = {Step(program, passes, 1), Step(program, passes, 2)};
    EXPECT_EQ(process_->heads(), 1U);
    return steps;
  }
  static std::vector<std::string> RandomPasses(std::mt19937& random, std::size_t count) {
    const auto actions = passes::ActionsOf(passes::ActionSpace::kDistinct);
    std::vector<std::string> texts;
    while (texts.size() < count) texts.emplace_back(actions[random() % actions.size()].text);
    return texts;
  }
};

TEST_F(PassHeadsTest, RandomSequencesStepByStepEqualThoseWithoutHeads) {
  std::mt19937 random(11);
  std::vector<std::pair<Bitcode, std::vector<std::string>>> walks;
  for (const std::uint32_t seed : {2U, 3U, 4U}) {
    walks.emplace_back(StressProgram(seed), RandomPasses(random, 15));
  }
  walks.emplace_back(CsmithProgram(5), RandomPasses(random, 25));
  std::vector<std::vector<EpisodeResult>> with;
  for (const auto& [program, passes] : walks) {
    with.push_back(Walk(program, passes));
    EXPECT_TRUE(process_->heads() > 0 || with.back().back().failure);
  }
  Start({}, {.heads = 0});
  std::size_t whole = 0;
  for (std::size_t i = 0; i < walks.size(); ++i) {
    const auto without = Walk(walks[i].first, walks[i].second);
    EXPECT_EQ(process_->heads(), 0U);
    for (std::size_t step = 0; step < without.size(); ++step) {
      EXPECT_EQ(with[i][step], without[step]) << i << " step " << step;
      if (!without[step].failure) ++whole;
    }
  }
  EXPECT_GT(whole, 40U);
}

TEST_F(PassHeadsTest, SeveralEpisodesInTurnsEachHaveTheirHead) {
  std::mt19937 random(12);
  const Bitcode program = CsmithProgram(5);
  std::vector<std::vector<std::string>> passes;
  for (int i = 0; i < 4; ++i) passes.push_back(RandomPasses(random, 12));
  std::vector<std::vector<EpisodeResult>> steps;
  for (std::size_t count = 0; count <= 12; ++count) {  // as a vector environment does
    std::vector<Episode> batch;
    for (const auto& each : passes) batch.push_back(StepOf(each, count));
    steps.push_back(Run(program, batch).episodes);
  }
  EXPECT_GE(process_->heads(), 3U);
  EXPECT_LE(process_->heads(), 8U);
  Start({}, {.heads = 0});
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const auto alone = Walk(program, passes[i]);
    for (std::size_t count = 0; count <= 12; ++count) EXPECT_EQ(steps[count][i], alone[count]);
  }
}

TEST_F(PassHeadsTest, WithoutWorkTheyAreDroppedAndTheNextStepIsRunFromTheProgramOn) {
  const Bitcode program = CsmithProgram(5);
  const std::vector<std::string> passes = {"function(mem2reg)", "function(gvn)", "function(dce)"};
  const auto whole = Walk(program, passes);
  ASSERT_EQ(process_->heads(), 1U);
  process_->DropHeads();
  EXPECT_EQ(process_->heads(), 0U);
  EXPECT_EQ(Run(program, {StepOf(passes, 3)}).episodes[0], whole[3]);
}

TEST_F(PassHeadsTest, ACrashLosesTheHeadAndIsToldAsEver) {
  const Bitcode program = StressProgram(1);
  const std::vector<std::string> passes = {"function(dce)", "function(adce)", "function(dce)",
                                           "function(scalarizer)", "function(dce)"};
  const auto with = Walk(program, passes);
  ASSERT_TRUE(with[4].failure);
  EXPECT_EQ(with[4].failure->reason, PassFailure::Reason::kCrashed);
  EXPECT_EQ(with[4].failure->pass_index, 3U);
  EXPECT_EQ(process_->heads(), 0U);
  EXPECT_TRUE(restarts_.empty()) << "the child that holds the programs lives";
  Start({}, {.heads = 0});
  EXPECT_EQ(with, Walk(program, passes));
}

TEST_F(PassHeadsTest, LimitsAreThoseOfTheWholeEpisode) {
  const Bitcode program = CsmithProgram(5);
  Start({.growth = 1, .instructions = 1});
  // reg2mem may leave more than the program has, which a head counts from the program on.
  const std::vector<std::string> passes = {"no-op-module", "function(mem2reg)", "function(dce)",
                                           "function(reg2mem)", "function(reg2mem)"};
  const auto with = Walk(program, passes);
  Start({.growth = 1, .instructions = 1}, {.heads = 0});
  EXPECT_EQ(with, Walk(program, passes));
}

TEST_F(PassHeadsTest, TheyAreBoundedAndAnUnusedOneMakesRoom) {
  Start({}, {.heads = 2});
  const std::vector<std::string> passes = {"function(dce)", "function(adce)", "function(gvn)"};
  const std::vector<Bitcode> programs = {StressProgram(2), StressProgram(3), StressProgram(4)};
  for (const Bitcode& program : programs) Walk(program, passes);
  EXPECT_EQ(process_->heads(), 2U) << "those in use are not given up";
  for (int i = 0; i < 70; ++i) {  // of another kind: no head serves them
    Run(programs[2], {{.passes = {"function(sink)", "function(gvn)"}, .wanted = {}}});
  }
  const std::vector<std::string> longer = {"function(dce)", "function(adce)", "function(gvn)",
                                           "function(dce)"};
  Walk(programs[2], longer);
  EXPECT_EQ(process_->heads(), 2U);
  Start({}, {.heads = 0});
  EXPECT_EQ(Walk(programs[2], longer).size(), 5U);
}

TEST_F(PassHeadsTest, AHeadKeepsItsProgramWhenTheChildTurnsToOthers) {
  const Bitcode program = CsmithProgram(5);
  const std::vector<std::string> passes = {"function(mem2reg)", "function(gvn)", "function(dce)"};
  std::vector<EpisodeResult> with = TwoStepsOfAHead(program, passes);
  for (std::uint32_t seed = 2; seed < 2 + kProgramSlots + 1; ++seed) {
    Run(StressProgram(seed), {{.passes = {"function(dce)", "function(gvn)"}, .wanted = {}}});
  }
  with.push_back(Step(program, passes, 3));
  EXPECT_EQ(process_->heads(), 1U);
  Start({}, {.heads = 0});
  const auto without = Walk(program, passes);
  EXPECT_EQ(with, std::vector(without.begin() + 1, without.end()));
}

TEST_F(PassHeadsTest, HeadsEndWithTheChildThatTheyAreForksOf) {
  Start({}, {.batch_limit = std::chrono::milliseconds(2000)});
  const Bitcode program = CsmithProgram(5);
  const std::vector<std::string> passes = {"function(mem2reg)", "function(gvn)", "function(dce)"};
  std::vector<EpisodeResult> with = TwoStepsOfAHead(program, passes);
  const Episode endless{.passes = std::vector<std::string>(100'000, "default<O3>"), .wanted = {}};
  ASSERT_TRUE(Run(StressProgram(3), {endless}).episodes[0].failure);
  ASSERT_EQ(restarts_, std::vector{ExitReason::Cause::kTimeout});
  with.push_back(Step(program, passes, 3));
  Start({}, {.heads = 0});
  const auto without = Walk(program, passes);
  EXPECT_EQ(with, std::vector(without.begin() + 1, without.end()));
}

}  // namespace
}  // namespace loopfleet::worker
