#include "storage/sqlite/tables/observation_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "common/job/outcome_json.h"
#include "common/job/task.h"
#include "storage/sqlite/damage.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/tables/job_text.h"

namespace loopfleet::storage {
namespace {

using nlohmann::json;

// A look-up considers no more rows of one subject, and reads the values of one.
constexpr int kMaxCandidates = 64;

// kInvalid: a text is not UTF-8, or a number is not finite, which JSON cannot say.
Result<std::string> ValuesText(const Observed& observed) {
  const json values = ObservedJson(observed);
  try {
    std::string text = values.dump();
    if (json::parse(text) == values) return text;
  } catch (const json::exception&) {
  }
  return Fail(ErrorKind::kInvalid, "an observed value is not finite, or its text is not UTF-8");
}

bool HasBlob(const Observed& observed) {
  return std::ranges::any_of(
      observed.values, [](const auto& each) { return std::holds_alternative<Blob>(each.second); });
}

std::optional<Observed> ParseValues(std::string_view text) {
  Observed observed;
  try {
    const json values = json::parse(text);
    for (const auto& [name, value] : values.items()) {
      if (value.is_number()) {
        observed.values[name] = value.get<double>();
      } else if (value.is_array()) {
        observed.values[name] = value.get<std::vector<double>>();
      } else if (value.is_object()) {
        observed.values[name] = Blob{.sha256 = value.at("sha256").get<std::string>(),
                                     .bytes = value.at("bytes").get<std::uint64_t>()};
      } else {
        observed.values[name] = value.get<std::string>();
      }
    }
  } catch (const json::exception&) {
    return std::nullopt;
  }
  return observed;
}

std::span<const std::uint8_t> BytesOf(const SubjectKey& key) { return key.bytes; }

}  // namespace

Result<ResultId> ObservationTable::Insert(const Outcome& outcome, const JobSpec& job) {
  const Evaluation& evaluation = outcome.evaluation;
  if (!evaluation.subject || !evaluation.conditions) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("job {}: observed values without their subject or their conditions "
                            "cannot be stored",
                            outcome.job));
  }
  LF_TRY(const std::string values, ValuesText(evaluation.observed()));
  LF_TRY(const ConditionsId conditions, conditions_.Intern(*evaluation.conditions));
  LF_TRY(const std::int64_t id,
         connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM observations"));
  if (id == 1)
    LF_TRY_VOID(RaiseOldestProgram(connection_, 14));  // older ones take its outcome for damage
  if (HasBlob(evaluation.observed())) LF_TRY_VOID(RaiseOldestProgram(connection_, 21));
  LF_TRY(Query query, connection_.Start("INSERT INTO observations VALUES (?,?,?,?,?,?,?,?,?,?)"));
  LF_TRY_VOID(query.Add(id)
                  .Add(EnumName(TaskOf(job).kind))
                  .Add(std::visit([](const auto& source) { return source.text; }, job.source))
                  .Add(job.passes.empty() ? ActionsText(job.actions)
                                          : fmt::format("{}", fmt::join(job.passes, ",")))
                  .Add(BytesOf(*evaluation.subject))
                  .Add(conditions)
                  .Add(values)
                  .Add(outcome.worker)
                  .Add(outcome.finished_at.time_since_epoch().count())
                  .AddChecksum()
                  .Run());
  return -id;
}

Result<std::optional<ResultId>> ObservationTable::FindSame(const Evaluation& evaluation) {
  if (!evaluation.subject || !evaluation.conditions) return std::nullopt;
  LF_TRY(const std::string values, ValuesText(evaluation.observed()));
  LF_TRY(const ConditionsId conditions, conditions_.Intern(*evaluation.conditions));
  LF_TRY(Query row, connection_.Start(R"sql(
    SELECT id FROM observations WHERE subject = ? AND conditions = ? AND "values" = ?
    ORDER BY id DESC LIMIT 1)sql"));
  row.Add(BytesOf(*evaluation.subject)).Add(conditions).Add(values);
  LF_TRY(const bool found, row.Next());
  if (!found) return std::nullopt;
  return -row.Int64();
}

Result<StoredAnswer> ObservationTable::Find(ResultId id, ObservedValues values) {
  StoredAnswer& last = last_[static_cast<std::size_t>(values)];
  if (last != nullptr && last->row == id) return last;
  LF_TRY(Query row, connection_.Start("SELECT * FROM observations WHERE id = ?"));
  row.Add(-id);
  LF_TRY(const bool found, row.Next());
  if (!found) return Damaged("observations", -id);
  LF_TRY(StoredResult stored, ReadRow(row, id, values));
  last = std::make_shared<const StoredResult>(std::move(stored));
  return last;
}

Status ObservationTable::Suspect(ResultId id, WallTime flagged_at, const std::string& reason) {
  LF_TRY_VOID(RaiseOldestProgram(connection_, 21));
  LF_TRY(Query query,
         connection_.Start("INSERT OR IGNORE INTO suspect_observations VALUES (?,?,?,?)"));
  return query.Add(-id).Add(flagged_at.time_since_epoch().count()).Add(reason).AddChecksum().Run();
}

Result<StoredAnswer> ObservationTable::FindLatest(const ResultKey& key, ObservedValues values) {
  std::optional<ResultId> id;
  {
    LF_TRY(Query row, connection_.Start(R"sql(
      SELECT id, conditions FROM observations
      WHERE subject = ? AND id NOT IN (SELECT observation FROM suspect_observations)
      ORDER BY id DESC LIMIT ?)sql"));
    row.Add(BytesOf(key.subject)).Add(kMaxCandidates);
    while (!id) {
      LF_TRY(const bool found, row.Next());
      if (!found) return nullptr;
      const ResultId candidate = -row.Int64();
      LF_TRY(Conditions conditions, conditions_.Find(row.Int64()));
      if (MatchesConditions({.conditions = std::move(conditions)}, key)) id = candidate;
    }
  }
  LF_TRY(StoredAnswer found, Find(*id, values));
  if (found->measured_at < key.measured_since || !Matches(found->evaluation, key)) return nullptr;
  return found;
}

Result<StoredResult> ObservationTable::ReadRow(Query& row, ResultId id, ObservedValues values) {
  row.Skip();  // id
  StoredResult stored{.row = id};
  Evaluation& evaluation = stored.evaluation;
  for (int column = 0; column < 3; ++column) row.Skip();  // kind, benchmark, actions
  const auto key = row.Blob();
  if (key.size() != sizeof(SubjectKey::bytes)) return Damaged("observations", -id);
  std::memcpy(evaluation.subject.emplace().bytes.data(), key.data(), key.size());
  const ConditionsId conditions = row.Int64();
  const std::string_view text = row.Text();
  stored.worker = row.Text();
  stored.measured_at = WallTime(Nanos(row.Int64()));
  if (!row.ChecksumMatches()) return Damaged("observations", -id);
  auto observed = values == ObservedValues::kRead ? ParseValues(text) : Observed{};
  if (!observed) return Damaged("observations", -id);
  evaluation.verdict = *std::move(observed);
  LF_TRY(evaluation.conditions, conditions_.Find(conditions));
  return stored;
}

}  // namespace loopfleet::storage
