#include "common/llvm_passes/observation.h"

#include <gtest/gtest.h>

namespace loopfleet::passes {
namespace {

TEST(Observation, EveryNameIsReadBack) {
  for (const ObservationInfo& info : ObservationTable()) {
    EXPECT_EQ(&InfoOf(info.observation), &info);
    EXPECT_EQ(ParseObservation(info.name).value(), info.observation);
  }
}

TEST(Observation, AnUnknownNameIsAnErrorWithTheNearest) {
  EXPECT_EQ(ParseObservation("Autophas").error().message,
            "unknown observation 'Autophas'; nearest: Autophase");
}

TEST(Observation, FeatureNamesAreInTheOrderOfTheSpecification) {
  ASSERT_EQ(InstCountNames().size(), 70U);
  EXPECT_EQ(InstCountNames()[2], "TotalFuncs");
  EXPECT_EQ(InstCountNames()[3], "Ret");
  EXPECT_EQ(InstCountNames()[69], "Freeze");
  ASSERT_EQ(AutophaseNames().size(), 56U);
  EXPECT_EQ(AutophaseNames()[0], "BBNumArgsHi");
  EXPECT_EQ(AutophaseNames()[55], "testUnary");
}

}  // namespace
}  // namespace loopfleet::passes
