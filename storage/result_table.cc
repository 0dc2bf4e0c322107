#include "storage/result_table.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <vector>

#include "storage/damage.h"
#include "storage/job_text.h"

namespace loopfleet::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "samples are stored little-endian");

std::span<const std::uint8_t> BytesOf(const std::vector<double>& samples) {
  return {reinterpret_cast<const std::uint8_t*>(samples.data()), samples.size() * sizeof(double)};
}

std::vector<double> SamplesOf(std::span<const std::uint8_t> bytes) {
  std::vector<double> samples(bytes.size() / sizeof(double));
  if (!samples.empty()) std::memcpy(samples.data(), bytes.data(), samples.size() * sizeof(double));
  return samples;
}

// Of all that an evaluation says beside its tree key and its stages: tells the measurements of one
// tree apart, so that an answer from the store is not stored again.
std::int64_t ContentOf(const Evaluation& evaluation, ConditionsId conditions) {
  const Measurement& measurement = evaluation.measurement();
  const double figures[] = {measurement.elapsed_ns,       measurement.elapsed_low_ns,
                            measurement.elapsed_high_ns,  measurement.elapsed_min_ns,
                            measurement.elapsed_mean_ns,  measurement.spread,
                            measurement.clock_before_mhz, measurement.clock_after_mhz};
  const std::uint64_t counts[] = {
      static_cast<std::uint64_t>(conditions), static_cast<std::uint64_t>(measurement.grade),
      measurement.iterations_per_sample, evaluation.flop_count, evaluation.scratch_bytes};
  XXH64_hash_t hash = 0;
  const auto add = [&hash](const void* data, std::size_t size) {
    hash = XXH3_64bits_withSeed(data, size, hash);
  };
  add(figures, sizeof figures);
  add(counts, sizeof counts);
  add(measurement.samples_ns.data(), measurement.samples_ns.size() * sizeof(double));
  add(measurement.sample_flags.data(), measurement.sample_flags.size());
  add(evaluation.code_hash.data(), evaluation.code_hash.size());
  for (const std::string& text : evaluation.no_effect) add(text.data(), text.size());
  return static_cast<std::int64_t>(hash);
}

// Grade C within 5 % is a figure of contended samples only: it is as narrow as it looks by chance.
constexpr double kWidestGradeB = 0.05;
bool IsPreciseEnough(const Measurement& measurement, double precision) {
  if (precision == 0) return true;
  return measurement.spread <= precision &&
         (measurement.grade != Grade::kC || precision > kWidestGradeB);
}

bool Matches(const Evaluation& evaluation, const ResultKey& key) {
  const Conditions& conditions = *evaluation.conditions;
  const Measurement& measurement = evaluation.measurement();
  return *evaluation.tree_key == key.tree && IsPreciseEnough(measurement, key.precision) &&
         conditions.hardware.hardware_class == key.hardware_class &&
         conditions.compiler == key.compiler && conditions.threads == key.threads &&
         conditions.cache == key.cache && conditions.policy == key.policy;
}

std::optional<Grade> ParseGrade(std::string_view text) {
  for (const Grade grade : {Grade::kA, Grade::kB, Grade::kC}) {
    if (GradeName(grade) == text) return grade;
  }
  return std::nullopt;
}

void AddMeasurement(Query& query, const Measurement& measurement) {
  query.Add(measurement.elapsed_ns)
      .Add(measurement.elapsed_low_ns)
      .Add(measurement.elapsed_high_ns)
      .Add(measurement.elapsed_min_ns)
      .Add(measurement.elapsed_mean_ns)
      .Add(measurement.spread)
      .Add(GradeName(measurement.grade))
      .Add(measurement.iterations_per_sample)
      .Add(BytesOf(measurement.samples_ns))
      .Add(std::span<const std::uint8_t>(measurement.sample_flags));
}

Measurement ReadMeasurement(Query& row) {
  Measurement measurement;
  measurement.elapsed_ns = row.Double();
  measurement.elapsed_low_ns = row.Double();
  measurement.elapsed_high_ns = row.Double();
  measurement.elapsed_min_ns = row.Double();
  measurement.elapsed_mean_ns = row.Double();
  measurement.spread = row.Double();
  measurement.grade = ParseGrade(row.Text()).value_or(Grade::kC);  // the checksum vouches for it
  measurement.iterations_per_sample = row.Int<std::uint64_t>();
  measurement.samples_ns = SamplesOf(row.Blob());
  const auto flags = row.Blob();
  measurement.sample_flags.assign(flags.begin(), flags.end());
  return measurement;
}

// The columns of version 2; all NULL in a row of version 1.
Status ReadClocks(Query& row, ResultId id, Measurement& measurement) {
  if (row.IsNull()) return {};
  measurement.clock_before_mhz = row.Double();
  measurement.clock_after_mhz = row.Double();
  if (!row.ChecksumMatches()) return Damaged("results", id);
  return {};
}

}  // namespace

Result<ResultId> ResultTable::NextId() {
  if (!next_id_) {
    LF_TRY(next_id_, connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM results"));
  }
  return (*next_id_)++;
}

Result<ResultId> ResultTable::Insert(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  if (!evaluation.tree_key || !evaluation.conditions) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("job {}: a measurement without its tree key or its "
                            "conditions cannot be stored",
                            outcome.job));
  }
  LF_TRY(const ConditionsId conditions, conditions_.Intern(*evaluation.conditions));
  LF_TRY(const auto no_effect, ListText(evaluation.no_effect));
  LF_TRY(const ResultId id, NextId());
  LF_TRY(Query query, connection_.Start(R"sql(
    INSERT INTO results VALUES (?,?,?,?, ?,?,?,?,?,?,?,?,?,?, ?,?,?,?,?,?,?, ?,?,?))sql"));
  query.Add(id)
      .Add(std::span<const std::uint8_t>(evaluation.tree_key->bytes))
      .Add(ContentOf(evaluation, conditions))
      .Add(conditions);
  AddMeasurement(query, evaluation.measurement());
  query.Add(evaluation.flop_count)
      .Add(evaluation.scratch_bytes)
      .Add(evaluation.code_hash)
      .Add(no_effect)
      .Add(outcome.worker)
      .Add(outcome.finished_at.time_since_epoch().count())
      .AddChecksum()
      .Add(evaluation.measurement().clock_before_mhz)
      .Add(evaluation.measurement().clock_after_mhz)
      .AddChecksum();
  LF_TRY_VOID(query.Run());
  return id;
}

Result<std::optional<ResultId>> ResultTable::FindSame(const Evaluation& evaluation) {
  if (!evaluation.tree_key || !evaluation.conditions) return std::nullopt;
  LF_TRY(const ConditionsId conditions, conditions_.Intern(*evaluation.conditions));
  LF_TRY(Query query, connection_.Start(R"sql(
    SELECT id FROM results WHERE tree_key = ? AND content = ? ORDER BY id DESC LIMIT 1)sql"));
  query.Add(std::span<const std::uint8_t>(evaluation.tree_key->bytes))
      .Add(ContentOf(evaluation, conditions));
  LF_TRY(const bool found, query.Next());
  if (!found) return std::nullopt;
  return query.Int64();
}

Result<StoredResult> ResultTable::ReadRow(Query& row, ResultId id) {
  row.Skip();  // id
  StoredResult result;
  Evaluation& evaluation = result.evaluation;
  const auto key = row.Blob();
  if (key.size() != sizeof(looptree::TreeKey::bytes)) return Damaged("results", id);
  std::memcpy(evaluation.tree_key.emplace().bytes.data(), key.data(), key.size());
  row.Skip();  // content
  const ConditionsId conditions = row.Int64();
  evaluation.verdict = ReadMeasurement(row);
  evaluation.flop_count = row.Int<std::uint64_t>();
  evaluation.scratch_bytes = row.Int<std::uint64_t>();
  evaluation.code_hash = row.Text();
  const auto no_effect = row.OptionalText();
  result.worker = row.Text();
  result.measured_at = WallTime(Nanos(row.Int64()));
  if (!row.ChecksumMatches()) return Damaged("results", id);
  LF_TRY_VOID(ReadClocks(row, id, std::get<Measurement>(evaluation.verdict)));
  if (no_effect) {
    LF_TRY(evaluation.no_effect, ParseListText(*no_effect));
  }
  LF_TRY(evaluation.conditions, conditions_.Find(conditions));
  return result;
}

Result<StoredResult> ResultTable::Find(ResultId id) {
  LF_TRY(Query row, connection_.Start("SELECT * FROM results WHERE id = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return Damaged("results", id);
  return ReadRow(row, id);
}

Result<std::optional<StoredResult>> ResultTable::FindLatest(const ResultKey& key) {
  LF_TRY(Query query, connection_.Start(R"sql(
    SELECT results.id FROM results
    JOIN conditions ON conditions.id = results.conditions
    JOIN hardware ON hardware.id = conditions.hardware
    JOIN compilers ON compilers.id = conditions.compiler
    WHERE results.tree_key = ? AND hardware.class = ?
      AND compilers.llvm = ? AND compilers.tier = ? AND compilers.revision = ?
      AND conditions.threads = ? AND conditions.cache = ? AND conditions.policy = ?
      AND (? = 0 OR (results.spread <= ? AND (results.grade <> 'C' OR ? > 0.05)))
      AND results.measured_at >= ?
      AND NOT EXISTS (SELECT 1 FROM suspect_results WHERE suspect_results.result = results.id)
    ORDER BY results.id DESC LIMIT 1)sql"));
  query.Add(std::span<const std::uint8_t>(key.tree.bytes))
      .Add(key.hardware_class)
      .Add(key.compiler.llvm)
      .Add(key.compiler.tier)
      .Add(key.compiler.revision)
      .Add(key.threads)
      .Add(CacheStateName(key.cache))
      .Add(key.policy)
      .Add(key.precision)
      .Add(key.precision)
      .Add(key.precision)
      .Add(key.measured_since.time_since_epoch().count());
  LF_TRY(const bool found, query.Next());
  if (!found) return std::nullopt;
  const ResultId id = query.Int64();
  LF_TRY(StoredResult result, Find(id));
  // The index led here; only the row itself says what it is.
  if (!Matches(result.evaluation, key)) return Damaged("results", id);
  return result;
}

Status ResultTable::Suspect(const ResultsSuspected& suspected) {
  // Ids ascend as results are written, and so do the times, but for what a clock that was set back
  // may have done: a minute more than asked for is looked at.
  constexpr Nanos kSlack = std::chrono::minutes(1);
  const std::int64_t since = suspected.since.time_since_epoch().count();
  std::vector<ResultId> ids;
  {
    LF_TRY(Query row,
           connection_.Start("SELECT id, worker, measured_at FROM results ORDER BY id DESC"));
    for (;;) {
      LF_TRY(const bool found, row.Next());
      if (!found) break;
      const ResultId id = row.Int64();
      const bool is_of_worker = row.Text() == suspected.worker;
      const std::int64_t measured_at = row.Int64();
      if (measured_at < since - kSlack.count()) break;
      if (is_of_worker && measured_at >= since) ids.push_back(id);
    }
  }
  for (const ResultId id : ids) {
    LF_TRY(Query query,
           connection_.Start("INSERT OR IGNORE INTO suspect_results VALUES (?,?,?,?)"));
    LF_TRY_VOID(query.Add(id)
                    .Add(suspected.flagged_at.time_since_epoch().count())
                    .Add(suspected.reason)
                    .AddChecksum()
                    .Run());
  }
  return {};
}

}  // namespace loopfleet::storage
