// What a person sees in the sqlite3 shell.

#include <fmt/format.h>

#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

class ViewsTest : public ScratchDatabase {
 protected:
  // Job 0 slow, job 1 fast, job 2 failed, all of one benchmark; job 3 a program of its own.
  void SetUp() override {
    JobSpec fast = PlainSpec(4);
    fast.actions = {looptree::Split{16}};
    Evaluation quick = SomeMeasurement(2);
    std::get<Measurement>(quick.verdict).elapsed_ns = 1000;
    const std::vector<Write> group = {
        SomeBatch(1, {PlainSpec(4), fast, PlainSpec(4), FullSpec()}),
        JobFinished{SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(4), SomeMeasurement(1))},
        JobFinished{SomeOutcome({.index = 1, .sequence = 2}, fast, quick)},
        JobFinished{SomeOutcome({.index = 2, .sequence = 3}, PlainSpec(4),
                                SomeFailure(FailureCode::kRunCrash))},
        JobFinished{SomeOutcome({.index = 3, .sequence = 4}, FullSpec(),
                                BareFailure(FailureCode::kNoMatchingWorker))}};
    ASSERT_TRUE(OpenStore()->Apply(group));
  }

  // All rows, columns parted by "|", NULL as "-".
  std::vector<std::string> Rows(const char* sql, int columns) {
    const auto connection = OpenByHand();
    auto query = connection->Start(sql).value();
    std::vector<std::string> rows;
    while (query.Next().value()) {
      std::string row;
      for (int column = 0; column < columns; ++column) {
        row += (column ? "|" : "") + query.OptionalText().value_or("-");
      }
      rows.push_back(row);
    }
    return rows;
  }
};

TEST_F(ViewsTest, Results) {
  EXPECT_EQ(
      Rows("SELECT benchmark, actions, substr(tree_key, 1, 4), status, "
           "round(gflop_per_second, 3), elapsed_ns, spread, grade, sample_count, failure "
           "FROM v_results WHERE batch = 1 ORDER BY \"index\" LIMIT 3",
           10),
      (std::vector<std::string>{
          "benchmark://mm-v0/mm64_64_4|down,swap_up,split_4|0101|ok|104.831|5001.25|0.004|B|4|-",
          "benchmark://mm-v0/mm64_64_4|split_16|0202|ok|524.288|1000.0|0.004|B|4|-",
          "benchmark://mm-v0/mm64_64_4|down,swap_up,split_4|c8c8|failed|-|-|-|-|-|RUN_CRASH"}));
  EXPECT_EQ(
      Rows("SELECT source, worker, hardware_class, isa, llvm, finished_at, attempts, threads, "
           "cache FROM v_results WHERE \"index\" = 0",
           9),
      (std::vector<std::string>{"measured|worker-1|cpu:AuthenticAMD:25.1.1:avx2|avx2|19.1.7|"
                                "2023-11-14T22:13:21.000Z|2|2|cold"}));
  EXPECT_EQ(Rows("SELECT failure, message, tree_key, hardware_class FROM v_results "
                 "WHERE \"index\" = 3",
                 4),
            (std::vector<std::string>{"NO_MATCHING_WORKER|no more is known|-|-"}));
}

TEST_F(ViewsTest, Best) {
  EXPECT_EQ(Rows("SELECT benchmark, round(gflop_per_second, 3), actions, outcomes FROM v_best", 4),
            (std::vector<std::string>{"benchmark://mm-v0/mm64_64_4|524.288|split_16|2"}));
}

// The schema itself refuses what may never be, whoever writes.
TEST_F(ViewsTest, AFailureHasNoTime) {
  const auto connection = OpenByHand();
  const auto refused = [&](const char* sql) {
    const Status status = connection->Run(sql);
    return !status && status.error().message.find("CHECK") != std::string::npos;
  };
  EXPECT_TRUE(refused("UPDATE outcomes SET result = 1 WHERE idx = 2"));
  EXPECT_TRUE(refused("UPDATE outcomes SET result = NULL WHERE idx = 0"));
  EXPECT_TRUE(refused("UPDATE outcomes SET failure_code = NULL WHERE idx = 2"));
  EXPECT_TRUE(refused("UPDATE outcomes SET failed_tree_key = x'00' WHERE idx = 0"));
  EXPECT_TRUE(refused("UPDATE results SET elapsed_ns = 0"));
  EXPECT_TRUE(refused("UPDATE jobs SET benchmark = NULL WHERE idx = 0"));
}

}  // namespace
}  // namespace loopfleet::storage
