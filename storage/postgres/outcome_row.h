#pragma once
// OutcomeRow: an Outcome as a row of the table `outcomes` in PostgreSQL
// (storage/postgres/migrations/), each value as text.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/job/outcome.h"
#include "common/job/outcome_json.h"
#include "storage/record.h"

namespace loopfleet::storage {

inline constexpr std::size_t kOutcomeColumns = 46;
// The names of the columns, in the order of OutcomeRow.
const std::vector<std::string>& OutcomeColumns();

// nullopt: NULL. `conditions`: conditions.id, if the evaluation has any. `repeated`:
// StoreReader::RepeatedFigure(); null: none.
using OutcomeRow = std::array<std::optional<std::string>, kOutcomeColumns>;
OutcomeRow RowOf(int coordinator, const Outcome& outcome, std::optional<int> conditions,
                 const FigureName* repeated = nullptr);

// What PostgreSQL takes as jsonb: the same for the texts in it.
std::string PostgresJson(const Json& json);
// What PostgreSQL takes as text: bytes that are not UTF-8, and zeros, become U+FFFD.
std::string PostgresText(const std::string& text);
// What it takes as bytea: "\x00ff".
std::string PostgresBytes(std::span<const std::uint8_t> bytes);
// What it takes as an array of these texts.
std::string PostgresList(const std::vector<std::string>& texts);
// What it takes as timestamptz, in microseconds: "2026-11-28 01:02:03.000004+00".
std::string PostgresTime(WallTime time);

}  // namespace loopfleet::storage
