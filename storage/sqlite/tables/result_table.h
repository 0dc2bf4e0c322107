#pragma once
// ResultTable: Evaluation with a measurement <-> row of `results`.

#include <bit>
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
#include "storage/sqlite/bulk_insert.h"
#include "storage/sqlite/id_range.h"
#include "storage/sqlite/recent_map.h"
#include "storage/sqlite/result_index/result_keys.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/conditions_table.h"
#include "storage/sqlite/tables/copy_table.h"
#include "storage/sqlite/tables/device_state_table.h"
#include "storage/sqlite/tables/foreign_table.h"
#include "storage/sqlite/tables/suspicion_table.h"
#include "storage/thinning.h"

namespace loopfleet::storage {

// Bytes of a sample in a row: its time and its flag.
inline constexpr std::uint64_t kSampleBytes = sizeof(double) + sizeof(std::uint8_t);

// Whether the evaluation has the tree and the conditions of the key.
bool Matches(const Evaluation& evaluation, const ResultKey& key);
// Whether it has its conditions.
bool MatchesConditions(const Evaluation& evaluation, const ResultKey& key);

class ResultTable {
 public:
  ResultTable(Connection& connection, ConditionsTable& conditions, const ResultKeys& keys)
      : connection_(connection),
        conditions_(conditions),
        states_(connection),
        copies_(connection),
        foreign_(connection),
        suspicions_(connection),
        keys_(keys) {}

  // Writes an outcome's measurement as a new row, by Flush() or sooner. kInvalid: its tree key or
  // conditions are missing, or its figures are impossible.
  Result<ResultId> Insert(const Outcome& outcome);
  // The program of a measurement just inserted, which then answers for its machine code.
  Status NoteProgram(ResultId id, const Evaluation& measured, const ProgramKey& program);
  Status Flush() {
    LF_TRY_VOID(rows_.Flush());
    LF_TRY_VOID(programs_.Flush());
    return thinned_rows_.Flush();
  }
  // The row that holds the same evaluation, if any.
  Result<std::optional<ResultId>> FindSame(const Evaluation& evaluation);

  // kCorrupt: the row is missing or damaged.
  Result<StoredResult> Find(ResultId id);
  // The same; nullopt: it is in doubt.
  Result<std::optional<StoredResult>> FindTrusted(ResultId id);
  // Results that FindLatest() considers: the newest of the tuple.
  static constexpr std::size_t kMaxCandidates = 64;
  static constexpr std::size_t kRecentCodes = 32'768;
  // The newest candidate that is precise and new enough. Suspect ones do not count. Ends at the
  // first one that is too old: ids and times ascend together unless a clock was set back, and a
  // result missed for that reason is measured again. A copy is as old, and as suspect, as the
  // measurement that it repeats.
  Result<StoredAnswer> FindLatest(const ResultKey& key);  // none: null
  // As StoreReader::FindSameCode.
  Result<StoredAnswer> FindSameCode(const std::string& code_hash, const ProgramKey& program,
                                    const ResultKey& key);

  // The results that may have been measured since. Flush first.
  Result<IdRange> RangeSince(WallTime since);
  // Flags results as suspect: those in the range that the worker measured since, or one. Once
  // that is durable, ResultKeys::Invalidate() makes every reader search again.
  Status Suspect(const ResultsSuspected& suspected, IdRange range);
  Status Suspect(ResultId id, WallTime flagged_at, const std::string& reason);
  // Flags the result, and what it is a copy of.
  Status SuspectFigure(ResultId id, WallTime flagged_at, const std::string& reason);

  // As StoreReader::RepeatedFigure.
  Result<std::optional<FigureName>> RepeatedBy(OutcomePlace outcome);
  // As StoreReader::ListDoubts.
  Result<std::vector<Doubt>> DoubtsAfter(std::int64_t number, std::uint32_t max);

  // Removes the samples that the rule does not keep from the current row of `row` (a SELECT *).
  // Written by Flush(), or sooner. kCorrupt: the row is damaged, and stays as it is.
  struct ThinnedRow {
    WallTime measured_at{};
    bool is_old = false;  // the rule applies to it
    std::uint64_t samples_taken = 0;
  };
  Result<ThinnedRow> Thin(Query& row, const ThinningRule& rule, std::int64_t retention);
  std::size_t gathered_bytes() const { return thinned_rows_.bytes().size(); }

  // Call after a rollback: what the transaction inserted is gone.
  void Forget();
  // Entries inserted since the last call, for ResultKeys::Publish.
  std::vector<ResultKeys::Entry> TakeAdded() { return std::exchange(added_, {}); }

 private:
  // Tells two measurements apart: the hash of the tuple, and one of everything else.
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

  // The figures that decide whether a result satisfies a request.
  struct Figures {
    bool is_suspect = false;
    bool is_foreign = false;  // of another coordinator
    bool is_copy = false;
    Grade grade = Grade::kD;
    double spread = 0;
    WallTime measured_at{};  // of the original, if it is a copy
  };
  // One measurement of a machine code.
  struct CodeFigure {
    ResultHash code = 0;
    double elapsed_mean_ns = 0;
    friend bool operator==(const CodeFigure&, const CodeFigure&) = default;
  };
  struct CodeFigureHash {
    std::size_t operator()(const CodeFigure& figure) const {
      return figure.code ^ std::bit_cast<std::uint64_t>(figure.elapsed_mean_ns);
    }
  };
  // What a reader knows of the newest results of one hash. Each row is read once for its figures,
  // so a repeated request, a miss included, reads at most the row that answers it.
  struct Candidates {
    std::uint32_t generation = 0;  // valid while it is the current one
    std::size_t asked = 0;         // for so many: there are no more if `ids` are fewer
    std::vector<ResultId> ids;     // newest first
    std::vector<Figures> figures;  // of the first ids, as far as they were read
    StoredAnswer last;             // the row that was read last
  };

  Result<ResultId> NextId();
  Result<StoredResult> ReadRow(Query& row, ResultId id);
  // At least so many, if there are; none: null.
  Result<Candidates*> CandidatesFor(ResultHash hash, std::size_t at_least);
  // The first that satisfies the key, or null if one is too old for older ones to; none: neither.
  Result<std::optional<StoredAnswer>> FirstAmong(Candidates& found, const ResultKey& key);
  Result<StoredAnswer> Read(Candidates& candidates, ResultId id);
  // What says that a row answers nothing.
  struct Marks {
    bool is_suspect = false;
    bool is_foreign = false;
  };
  Result<Marks> MarksOf(ResultId id);
  Result<Figures> FiguresOf(const StoredResult& row);
  // The result, or what it is a copy of. kCorrupt: a row is damaged.
  Result<FigureName> NameOfFigure(ResultId id);
  // The result itself.
  Result<FigureName> NameOf(ResultId id);
  // Without its number. kCorrupt: it is not known what is in doubt.
  Result<Doubt> DoubtAbout(ResultId id);
  static bool Satisfies(const Figures& figures, const ResultKey& key);
  Result<std::optional<ResultId>> FindStoredSame(const Identity& identity);
  void Remember(const Identity& identity, ResultId id);
  // Enters the result under its machine code, or as a copy of the measurement that it repeats.
  // `under`: the hash of its conditions.
  Status EnterCode(const Evaluation& evaluation, ResultHash under, ResultId id);
  Result<bool> IsOfProgram(ResultId id, const ProgramKey& program);
  // None: the job that measured it was cancelled, or too many have measured the code since.
  Result<std::optional<ResultId>> FindOriginal(const CodeFigure& figure);

  Connection& connection_;
  ConditionsTable& conditions_;
  DeviceStateTable states_;
  CopyTable copies_;
  ForeignTable foreign_;
  SuspicionTable suspicions_;
  const ResultKeys& keys_;
  RowFeed rows_{connection_,
                "INSERT OR ROLLBACK INTO results SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,"
                "c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,NULL,NULL,NULL,NULL FROM row_feed"};
  RowFeed thinned_rows_{connection_,
                        "REPLACE INTO results SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13,"
                        "c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,c24,c25,c26,c27 FROM row_feed"};
  RowFeed programs_{connection_,
                    "INSERT OR ROLLBACK INTO result_programs SELECT c0,c1,c2 FROM row_feed"};
  std::vector<ResultKeys::Entry> added_;  // writer only
  std::optional<ResultId> next_id_;       // writer only; empty: read from the table
  // Writer only: the conditions of the newest row, and their hash.
  std::optional<std::pair<ConditionsId, ResultHash>> newest_hash_;
  // Writer only: rows written or found recently, so that many equal answers take one search.
  std::unordered_map<Identity, ResultId, IdentityHash> id_by_identity_;
  // Writer only: measurements written recently. A report often has copies beside its measurement,
  // which the index does not have yet.
  RecentMap<CodeFigure, ResultId, CodeFigureHash> id_by_code_{kRecentCodes};
  std::unordered_map<ResultHash, Candidates> candidates_;  // reader only
  std::int64_t newest_lost_doubt_ = 0;                     // reader only: reported once
};

}  // namespace loopfleet::storage
