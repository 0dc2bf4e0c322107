#include "coordinator/core/tables/single_flight_table.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace loopfleet::coordinator {
namespace {

TEST(SingleFlightTable, QuestionsOfOneTreeAreSpread) {
  SingleFlightTable table;
  for (std::uint64_t i = 0; i < 100'000; ++i) table.Expect({.cut_above_ns = i});
  EXPECT_EQ(table.size(), 100'000u);
  EXPECT_LE(table.WorstBucket(), 16u);
}

TEST(SingleFlightTable, EachPartOfAQuestionCounts) {
  const std::vector<Question> questions = {{},
                                           {.subject = {{1}}},
                                           {.placement = Placement::kAny},
                                           {.threads = 2},
                                           {.cache = CacheState::kCold},
                                           {.precision = 0.5},
                                           {.budget_ms = 0.5},
                                           {.cut_above_ns = 1},
                                           {.labels = {"a"}},
                                           {.labels = {"a", "b"}},
                                           {.affinity = "a"}};
  std::set<std::size_t> hashes;
  for (const Question& question : questions) hashes.insert(QuestionHash{}(question));
  EXPECT_EQ(hashes.size(), questions.size());
}

// What collides under one key does not under another, which a client does not know.
TEST(SingleFlightTable, QuestionsThatCollideAreSpreadByAnotherKey) {
  constexpr std::size_t kBuckets = 1'009;
  const QuestionHash known{};
  const QuestionHash secret{{1}};
  std::set<std::size_t> by_figure;
  std::set<std::size_t> by_affinity;
  for (std::uint64_t i = 0; i < 100 * kBuckets; ++i) {
    const Question figure{.cut_above_ns = i};
    if (known(figure) % kBuckets == 0) by_figure.insert(secret(figure) % kBuckets);
    const Question affinity{.affinity = std::to_string(i)};
    if (known(affinity) % kBuckets == 0) by_affinity.insert(secret(affinity) % kBuckets);
  }
  EXPECT_GT(by_figure.size(), 50u);
  EXPECT_GT(by_affinity.size(), 50u);
}

}  // namespace
}  // namespace loopfleet::coordinator
