#include "storage/postgres/outcome_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/unit/storage/record_samples.h"

namespace loopfleet::storage {
namespace {

using namespace std::string_literals;

std::optional<std::string> ValueOf(const OutcomeRow& row, const std::string& column) {
  const auto& names = OutcomeColumns();
  return row.at(static_cast<std::size_t>(std::ranges::find(names, column) - names.begin()));
}

TEST(OutcomeRow, TextLosesWhatPostgresRefuses) {
  EXPECT_EQ(PostgresText("plain"), "plain");
  EXPECT_EQ(PostgresText("größer"), "größer");
  EXPECT_EQ(PostgresText("a\0b\0"s), "a\uFFFDb\uFFFD");
  EXPECT_EQ(PostgresText("a\xff"), "a\uFFFD");
}

TEST(OutcomeRow, JsonLosesZeros) {
  EXPECT_EQ(PostgresJson(Json{{"a", "b\0c"s}}), R"({"a":"b\ufffdc"})");
  EXPECT_EQ(PostgresJson(Json{{"a\0"s, 1}}), R"({"a\ufffd":1})");
  // Here the text is a backslash and "u0000".
  EXPECT_EQ(PostgresJson(Json(R"(\u0000)")), R"("\\u0000")");
  EXPECT_EQ(PostgresJson(Json("\\\0"s)), R"("\\\ufffd")");
}

TEST(OutcomeRow, NumbersFitSignedColumns) {
  Evaluation timed = SomeMeasurement(1);
  timed.flop_count = timed.scratch_bytes = UINT64_MAX;
  std::get<Measurement>(timed.verdict).iterations_per_sample = std::uint64_t{1} << 63;
  const OutcomeRow row = RowOf(1, SomeOutcome({}, PlainSpec(1), timed), {});
  EXPECT_EQ(ValueOf(row, "flop_count"), "-1");
  EXPECT_EQ(ValueOf(row, "scratch_bytes"), "-1");
  EXPECT_EQ(ValueOf(row, "iterations"), "-9223372036854775808");
  Evaluation failed = SomeFailure(FailureCode::kInvalidAction);
  std::get<Failure>(failed.verdict).action_index = UINT32_MAX;
  EXPECT_EQ(ValueOf(RowOf(1, SomeOutcome({}, PlainSpec(1), failed), {}), "action_index"), "-1");
}

TEST(OutcomeRow, WhatAJobObservedLosesZeros) {
  Evaluation evaluation;
  evaluation.verdict = Observed{.values = {{"text", "a\0b"s}}};
  const Outcome outcome = SomeOutcome({}, PlainSpec(1), evaluation);
  EXPECT_EQ(ValueOf(RowOf(1, outcome, {}), "observed"), R"({"text":"a\ufffdb"})");
}

}  // namespace
}  // namespace loopfleet::storage
