#include "client/search/loop_space.h"

#include <gtest/gtest.h>

#include <set>

#include "common/looptree/actions/walk.h"
#include "tests/unit/client/search/landscape.h"

namespace loopfleet::client {
namespace {

// What the coordinator and the workers make of the candidate's actions.
looptree::TreeKey Replayed(const LoopSpace& space, const Candidate& candidate) {
  const auto replayed = looptree::Replay(space.source(), candidate.actions);
  return replayed ? looptree::KeyOf(replayed->tree) : looptree::TreeKey{};
}

TEST(LoopSpace, MakesOnlyLegalCandidates) {
  const auto space = OpenSpace("benchmark://mm-v0/mm33_48_20");
  SplitMix64 random(1);
  std::set<looptree::TreeKey> keys;
  Candidate at = space->Start();
  for (int i = 0; i < 300; ++i) {
    const Candidate walk = space->RandomWalk(8, random);
    at = space->Cross(space->Mutate(at, random), walk, random);
    EXPECT_EQ(Replayed(*space, walk), walk.key);
    EXPECT_EQ(Replayed(*space, at), at.key);
    EXPECT_EQ(space->Follow(at.steps).key, at.key);
    keys.insert({walk.key, at.key});
  }
  EXPECT_GT(keys.size(), 400);
}

TEST(LoopSpace, NeighboursAreOneStepAwayAndDiffer) {
  const auto space = OpenSpace("benchmark://mm-v0/mm64_48_20");
  const Candidate start = space->Start();
  std::set<looptree::TreeKey> keys = {start.key};
  const std::vector<Candidate> neighbours = space->Neighbours(start);
  for (const Candidate& next : neighbours) {
    EXPECT_EQ(next.steps.size(), 1);
    EXPECT_EQ(Replayed(*space, next), next.key);
    EXPECT_TRUE(keys.insert(next.key).second);
  }
  EXPECT_GT(neighbours.size(), 40);
}

TEST(LoopSpace, AStepThatChangesNothingIsNone) {
  const auto space = OpenSpace("benchmark://mm-v0/mm4_4_4");
  const Candidate start = space->Start();
  EXPECT_FALSE(space->Extend(start, {.loop = 0, .change = looptree::Merge{}}));
  EXPECT_FALSE(space->Extend(start, {.loop = 0, .change = looptree::SwapUp{}}));
  EXPECT_FALSE(space->Extend(start, {.loop = 99, .change = looptree::SwapUp{}}));
  const Step split{.loop = 0, .change = looptree::Split{.factor = 2}};
  EXPECT_EQ(space->Follow(std::vector<Step>{{.loop = 0, .change = looptree::Merge{}}, split}).steps,
            std::vector<Step>{split});
}

TEST(LoopSpace, ActionsOfOthersAreChecked) {
  const auto space = OpenSpace("benchmark://mm-v0/mm8_8_8");
  const std::vector<looptree::Action> legal = {looptree::Down{}, looptree::Split{.factor = 4}};
  EXPECT_EQ(Replayed(*space, space->FromActions(legal).value()), space->FromActions(legal)->key);
  const std::vector<looptree::Action> illegal = {looptree::Up{}};
  EXPECT_EQ(space->FromActions(illegal).error().kind, ErrorKind::kInvalid);
}

TEST(LoopSpace, ActionsOfOthersBecomeSteps) {
  const auto space = OpenSpace("benchmark://mm-v0/mm64_64_64");
  SplitMix64 random(11);
  for (int i = 0; i < 200; ++i) {
    const Candidate walk = space->RandomWalk(8, random);
    const Candidate found = space->FromActions(walk.actions).value();
    EXPECT_EQ(found.key, walk.key);
    EXPECT_EQ(space->Follow(found.steps).key, walk.key);
  }
  // One that changes nothing is no step, and neither are moves of the cursor.
  const std::vector<looptree::Action> actions = {looptree::Down{}, looptree::Split{.factor = 4},
                                                 looptree::Up{}};
  const std::vector<Step> wanted = {{.loop = 1, .change = looptree::Split{.factor = 4}}};
  EXPECT_EQ(space->FromActions(actions)->steps, wanted);
}

TEST(LoopSpace, RefusesWhatItCannotSearch) {
  const auto unknown = LoopSpace::Open(looptree::BenchmarkUri{"benchmark://mm-v1/mm8_8_8"});
  EXPECT_NE(unknown.error().message.find("mm-v0"), std::string::npos) << unknown.error().message;
  const auto simple = LoopSpace::Open(looptree::BenchmarkUri{"benchmark://loop_tool-cpu-v0/64"});
  EXPECT_NE(simple.error().message.find("dialect agent"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet::client
