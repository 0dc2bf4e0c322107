#include "coordinator/core/tables/pending_commits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace loopfleet::coordinator {
namespace {

TEST(PendingCommits, CountWhatOutcomesTakeUntilTheyAreOnDisk) {
  PendingCommits commits;
  const Token first = commits.Add(OutcomeCommit{.outcomes = {{}, {}}, .bytes = 5'000});
  const Token second = commits.Add(OutcomeCommit{.outcomes = {{}}, .bytes = 400'000});
  EXPECT_EQ(commits.undurable_outcomes(), 3U);
  EXPECT_EQ(commits.undurable_outcome_bytes(), 405'000U);
  commits.Take(first);
  EXPECT_EQ(commits.undurable_outcome_bytes(), 400'000U);
  commits.Take(second);
  EXPECT_EQ(commits.undurable_outcomes(), 0U);
  EXPECT_EQ(commits.undurable_outcome_bytes(), 0U);
}

TEST(PendingCommits, WhateverIsLargeInAnOutcomeCounts) {
  constexpr std::size_t kLarge = 100'000;
  const std::string text(kLarge, 'x');
  Evaluation observed{.verdict = Observed{.values = {{"Ir", text}}}};
  Evaluation failed{.verdict = Failure{.message = text}};
  Evaluation annotated{.notes = {text}};
  Evaluation sampled{.verdict = Measurement{.samples_ns = std::vector<double>(kLarge / 8, 1.0)}};
  for (const Evaluation& evaluation : {observed, failed, annotated, sampled}) {
    EXPECT_GE(LargePartsOf(evaluation), kLarge);
    EXPECT_LE(LargePartsOf(evaluation), kLarge * 5 / 4);
  }
  EXPECT_EQ(LargePartsOf(Evaluation{}), 0U);
}

}  // namespace
}  // namespace loopfleet::coordinator
