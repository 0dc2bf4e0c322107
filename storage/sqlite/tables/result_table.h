#pragma once
// ResultTable: Evaluation with a measurement <-> row of `results`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/job/outcome.h"
#include "storage/record.h"
#include "storage/result_index/result_keys.h"
#include "storage/sqlite/bulk_insert.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/conditions_table.h"
#include "storage/sqlite/tables/device_state_table.h"
#include "storage/sqlite/tables/thinning_rule.h"

namespace loopfleet::storage {

// What a sample takes in a row: its time and its flag.
inline constexpr std::uint64_t kSampleBytes = sizeof(double) + sizeof(std::uint8_t);

// Whether it is about the tuple that the key's hash is of.
bool IsAbout(const Evaluation& evaluation, const ResultKey& key);

class ResultTable {
 public:
  ResultTable(Connection& connection, ConditionsTable& conditions, const ResultKeys& keys)
      : connection_(connection), conditions_(conditions), states_(connection), keys_(keys) {}

  // Writes an outcome's measurement as a new row. kInvalid: it lacks its tree key or its
  // conditions, or its figures are senseless.
  // The row is written by Flush(), or sooner.
  Result<ResultId> Insert(const Outcome& outcome);
  Status Flush() {
    LF_TRY_VOID(rows_.Flush());
    return thinned_rows_.Flush();
  }
  // The row that already says what this outcome's evaluation says, if there is one.
  Result<std::optional<ResultId>> FindSame(const Evaluation& evaluation);

  // kCorrupt: no such row, or one that is not what was written.
  Result<StoredResult> Find(ResultId id);
  // The newest that is about the key and as good and as new as it says. Suspected ones do not
  // count.
  Result<StoredAnswer> FindLatest(const ResultKey& key);  // none: null

  // Flags them. Once that is durable, ResultKeys::Invalidate() makes every reader look again.
  Status Suspect(const ResultsSuspected& suspected);
  Status Suspect(ResultId id, WallTime flagged_at, const std::string& reason);

  // Takes the samples away that the rule does not leave, from the row that `row` (of SELECT *) is
  // at. Written by Flush(), or sooner. kCorrupt: the row is not what was written; it stays so.
  struct ThinnedRow {
    bool is_old = false;  // the rule is about it
    std::uint64_t samples_taken = 0;
  };
  Result<ThinnedRow> Thin(Query& row, const ThinningRule& rule, std::int64_t retention);
  std::size_t gathered_bytes() const { return thinned_rows_.bytes().size(); }

  // To be called when a transaction was undone: what it inserted is gone.
  void Forget();
  // What was inserted since, for ResultKeys::Publish.
  std::vector<ResultKeys::Entry> TakeAdded() { return std::exchange(added_, {}); }

 private:
  // What tells two measurements apart: where it is looked for, and a hash of all that it says.
  struct Identity {
    ResultHash hash = 0;
    std::int64_t content = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  struct IdentityHash {
    std::size_t operator()(const Identity& identity) const {
      return identity.hash ^ static_cast<std::uint64_t>(identity.content);
    }
  };

  Result<ResultId> NextId();
  Result<StoredResult> ReadRow(Query& row, ResultId id);
  Result<StoredAnswer> FindStored(const ResultKey& key, ResultHash hash, std::uint32_t generation);
  Result<bool> IsSuspect(ResultId id);
  Result<std::optional<ResultId>> FindStoredSame(const Identity& identity);
  void Remember(const Identity& identity, ResultId id);

  Connection& connection_;
  ConditionsTable& conditions_;
  DeviceStateTable states_;
  const ResultKeys& keys_;
  RowFeed rows_{connection_,
                "INSERT OR ROLLBACK INTO results SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,"
                "c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,NULL,NULL,NULL,NULL FROM row_feed"};
  RowFeed thinned_rows_{connection_,
                        "REPLACE INTO results SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13,"
                        "c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,c24,c25,c26,c27 FROM row_feed"};
  std::vector<ResultKeys::Entry> added_;  // the writer's
  std::optional<ResultId> next_id_;       // the writer's; read from the table when it is not known
  // The writer's: rows written or found lately, so that many askers of one result cost one look.
  std::unordered_map<Identity, ResultId, IdentityHash> same_;
  // A reader's: the newest trusted rows of tuples asked about lately, good while no newer row may
  // answer and none is suspected.
  struct Answer {
    std::uint32_t generation = 0;
    StoredAnswer result;
  };
  std::unordered_map<ResultHash, Answer> answers_;
};

}  // namespace loopfleet::storage
