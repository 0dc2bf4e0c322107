#include "storage/sqlite/tables/result_table.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/log.h"
#include "storage/sqlite/damage.h"
#include "storage/sqlite/tables/job_text.h"

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

// Hashes everything in an evaluation but its tree key and stages. Tells the measurements of one
// tree apart, so that an answer from the store is not stored again.
std::int64_t ContentHash(const Evaluation& evaluation, ConditionsId conditions) {
  const Measurement& measurement = evaluation.measurement();
  const double figures[] = {measurement.elapsed_ns,       measurement.elapsed_low_ns,
                            measurement.elapsed_high_ns,  measurement.elapsed_min_ns,
                            measurement.elapsed_mean_ns,  measurement.spread,
                            measurement.clock_before_mhz, measurement.clock_after_mhz};
  const std::uint64_t counts[] = {
      static_cast<std::uint64_t>(conditions), static_cast<std::uint64_t>(measurement.grade),
      measurement.iterations_per_sample, evaluation.flop_count, evaluation.scratch_bytes};
  // Version 1 had no clocks. Without them the hash is the one that its rows contain.
  constexpr std::size_t kFiguresOfVersion1 = 6;
  const bool has_clocks = measurement.clock_before_mhz != 0 || measurement.clock_after_mhz != 0;
  XXH64_hash_t hash = 0;
  const auto add = [&hash](const void* data, std::size_t size) {
    hash = XXH3_64bits_withSeed(data, size, hash);
  };
  add(figures, has_clocks ? sizeof figures : kFiguresOfVersion1 * sizeof figures[0]);
  add(counts, sizeof counts);
  add(measurement.samples_ns.data(), measurement.samples_ns.size() * sizeof(double));
  add(measurement.sample_flags.data(), measurement.sample_flags.size());
  add(evaluation.code_hash.data(), evaluation.code_hash.size());
  for (const std::string& text : evaluation.notes) add(text.data(), text.size());
  return static_cast<std::int64_t>(hash);
}

// Entries of each cache. A full cache is cleared.
constexpr std::size_t kMaxIdentities = 65'536;
constexpr std::size_t kMaxTuples = 16'384;  // about 1 KiB each; 3 KiB with all candidates read

// Checks the table's CHECK constraints, which the writer disables: here they cost less per row.
Status CheckMeasurement(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  if (!evaluation.subject || !evaluation.conditions) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("job {}: a measurement without its tree key or its "
                            "conditions cannot be stored",
                            outcome.job));
  }
  const Measurement& measurement = evaluation.measurement();
  if (!std::isfinite(measurement.elapsed_ns) || measurement.elapsed_ns <= 0) {
    return Fail(ErrorKind::kInvalid, fmt::format("job {}: elapsed_ns {} is no time", outcome.job,
                                                 measurement.elapsed_ns));
  }
  if (measurement.samples_ns.size() != measurement.sample_flags.size()) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("job {}: {} samples_ns, but {} sample_flags", outcome.job,
                            measurement.samples_ns.size(), measurement.sample_flags.size()));
  }
  return {};
}

// Results of one machine code that a look-up considers: the newest.
constexpr std::size_t kMaxOfOneCode = 16;

// Grades A and B only: as ResultKeys::LoadRows.
bool HasCode(const Evaluation& evaluation) {
  return !evaluation.code_hash.empty() && evaluation.measurement().grade <= Grade::kB;
}

void AddMeasurement(RowFeed& row, const Measurement& measurement) {
  row.Add(measurement.elapsed_ns)
      .Add(measurement.elapsed_low_ns)
      .Add(measurement.elapsed_high_ns)
      .Add(measurement.elapsed_min_ns)
      .Add(measurement.elapsed_mean_ns)
      .Add(measurement.spread)
      .Add(EnumName(measurement.grade))
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
  measurement.grade =
      ValueNamed<Grade>(row.Text()).value_or(Grade::kC);  // the checksum vouches for it
  measurement.iterations_per_sample = row.Int<std::uint64_t>();
  measurement.samples_ns = SamplesOf(row.Blob());
  const auto flags = row.Blob();
  measurement.sample_flags.assign(flags.begin(), flags.end());
  return measurement;
}

// Reads the columns of version 2; all NULL in a row of version 1.
Status ReadClocks(Query& row, ResultId id, Measurement& measurement) {
  if (row.IsNull()) {
    for (int column = 0; column < 3; ++column) row.Skip();
    return {};
  }
  measurement.clock_before_mhz = row.Double();
  measurement.clock_after_mhz = row.Double();
  if (!row.ChecksumMatches()) return Damaged("results", id);
  return {};
}

// Reads the columns of version 6; all NULL if no sample was removed.
Status ReadThinned(Query& row, ResultId id, Measurement& measurement) {
  const auto retention = row.OptionalInt64();
  const auto samples = row.OptionalInt64();
  const auto accepted = row.OptionalInt64();
  if (!retention && !samples && !accepted && row.IsNull()) return {};
  if (!row.ChecksumMatches()) return Damaged("results", id);
  measurement.thinned =
      Thinned{.samples_before = static_cast<std::uint32_t>(samples.value_or(0)),
              .accepted_before = static_cast<std::uint32_t>(accepted.value_or(0))};
  return {};
}

}  // namespace

bool Matches(const Evaluation& evaluation, const ResultKey& key) {
  return evaluation.subject && *evaluation.subject == key.subject &&
         MatchesConditions(evaluation, key);
}

bool MatchesConditions(const Evaluation& evaluation, const ResultKey& key) {
  if (!evaluation.conditions) return false;
  const Conditions& conditions = *evaluation.conditions;
  return conditions.hardware.hardware_class == key.hardware_class &&
         conditions.compiler == key.compiler && conditions.threads == key.threads &&
         conditions.cache == key.cache && conditions.policy == key.policy;
}

void ResultTable::Forget() {
  rows_.Forget();
  thinned_rows_.Forget();
  programs_.Forget();
  added_.clear();
  next_id_.reset();
  newest_hash_.reset();
  id_by_identity_.clear();
  id_by_code_.Clear();
}

Result<ResultId> ResultTable::NextId() {
  if (!next_id_) {
    LF_TRY(next_id_, connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM results"));
  }
  return (*next_id_)++;
}

Result<ResultId> ResultTable::Insert(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  LF_TRY_VOID(CheckMeasurement(outcome));
  LF_TRY(const ConditionsId conditions, conditions_.Intern(*evaluation.conditions));
  LF_TRY(const auto notes, ListText(evaluation.notes));
  LF_TRY(const ResultId id, NextId());
  if (!newest_hash_ || newest_hash_->first != conditions) {
    newest_hash_.emplace(conditions, HashOf(*evaluation.conditions));
  }
  const ResultHash under = newest_hash_->second;
  const Identity identity{.hash = HashOf(evaluation.subject->bytes, under),
                          .content = ContentHash(evaluation, conditions)};
  rows_.Add(id)
      .Add(std::span<const std::uint8_t>(evaluation.subject->bytes))
      .Add(identity.content)
      .Add(conditions);
  AddMeasurement(rows_, evaluation.measurement());
  rows_.Add(evaluation.flop_count)
      .Add(evaluation.scratch_bytes)
      .Add(evaluation.code_hash)
      .Add(notes)
      .Add(outcome.worker)
      .Add(outcome.finished_at.time_since_epoch().count())
      .AddChecksum()
      .Add(evaluation.measurement().clock_before_mhz)
      .Add(evaluation.measurement().clock_after_mhz)
      .AddChecksum();
  LF_TRY_VOID(rows_.EndRow());
  if (const auto& device = evaluation.measurement().device) {
    LF_TRY_VOID(states_.Insert(id, *device));
  }
  added_.push_back({identity.hash, id});
  LF_TRY_VOID(EnterCode(evaluation, under, id));
  Remember(identity, id);
  return id;
}

Status ResultTable::NoteProgram(ResultId id, const Evaluation& measured,
                                const ProgramKey& program) {
  if (!HasCode(measured)) return {};
  programs_.Add(id).Add(std::span<const std::uint8_t>(program.bytes)).AddChecksum();
  return programs_.EndRow();
}

Result<bool> ResultTable::IsOfProgram(ResultId id, const ProgramKey& program) {
  LF_TRY(Query row, connection_.Start("SELECT * FROM result_programs WHERE result = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return false;
  row.Skip();
  const bool is_same = std::ranges::equal(row.Blob(), program.bytes);
  if (!row.ChecksumMatches()) return Damaged("result_programs", id);
  return is_same;
}

Status ResultTable::EnterCode(const Evaluation& evaluation, ResultHash under, ResultId id) {
  if (!HasCode(evaluation)) return {};
  const CodeFigure figure{.code = HashOfCode(evaluation.code_hash, under),
                          .elapsed_mean_ns = evaluation.measurement().elapsed_mean_ns};
  if (evaluation.same_code) {
    LF_TRY(const auto original, FindOriginal(figure));
    return copies_.Insert(id, original.value_or(id));
  }
  added_.push_back({figure.code, id});
  if (id_by_code_.Find(figure) == nullptr) id_by_code_.Add(figure, id);
  return {};
}

Result<std::optional<ResultId>> ResultTable::FindOriginal(const CodeFigure& figure) {
  if (const auto* known = id_by_code_.Find(figure)) return known->second;
  LF_TRY(const auto ids, keys_.Find(connection_, figure.code, kMaxCandidates));
  for (const ResultId id : ids) {
    LF_TRY(Query row, connection_.Start("SELECT elapsed_mean_ns FROM results WHERE id = ?"));
    row.Add(id);
    LF_TRY(const bool found, row.Next());
    if (found && row.Double() == figure.elapsed_mean_ns) return id;
  }
  return std::nullopt;
}

void ResultTable::Remember(const Identity& identity, ResultId id) {
  if (id_by_identity_.size() >= kMaxIdentities) id_by_identity_.clear();
  id_by_identity_.insert_or_assign(identity, id);
}

Result<std::optional<ResultId>> ResultTable::FindSame(const Evaluation& evaluation) {
  if (!evaluation.subject || !evaluation.conditions) return std::nullopt;
  LF_TRY(const ConditionsId conditions, conditions_.Intern(*evaluation.conditions));
  const Identity identity{.hash = HashOf(*evaluation.subject, *evaluation.conditions),
                          .content = ContentHash(evaluation, conditions)};
  if (const auto known = id_by_identity_.find(identity); known != id_by_identity_.end())
    return known->second;
  auto found = FindStoredSame(identity);
  // If damage hides the row, the same figures are stored twice.
  if (!found && found.error().kind == ErrorKind::kCorrupt) return std::nullopt;
  if (found && *found) Remember(identity, **found);
  return found;
}

Result<std::optional<ResultId>> ResultTable::FindStoredSame(const Identity& identity) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  LF_TRY(const auto ids, keys_.Find(connection_, identity.hash, kAll));
  for (const ResultId id : ids) {
    LF_TRY(Query row, connection_.Start("SELECT content FROM results WHERE id = ?"));
    row.Add(id);
    LF_TRY(const bool found, row.Next());
    if (found && row.Int64() == identity.content) return id;
  }
  return std::nullopt;
}

Result<StoredResult> ResultTable::ReadRow(Query& row, ResultId id) {
  row.Skip();  // id
  StoredResult result{.row = id};
  Evaluation& evaluation = result.evaluation;
  const auto key = row.Blob();
  if (key.size() != sizeof(SubjectKey::bytes)) return Damaged("results", id);
  std::memcpy(evaluation.subject.emplace().bytes.data(), key.data(), key.size());
  row.Skip();  // content
  const ConditionsId conditions = row.Int64();
  evaluation.verdict = ReadMeasurement(row);
  evaluation.flop_count = row.Int<std::uint64_t>();
  evaluation.scratch_bytes = row.Int<std::uint64_t>();
  evaluation.code_hash = row.Text();
  const auto notes = row.OptionalText();
  result.worker = row.Text();
  result.measured_at = WallTime(Nanos(row.Int64()));
  if (!row.ChecksumMatches()) return Damaged("results", id);
  LF_TRY_VOID(ReadClocks(row, id, std::get<Measurement>(evaluation.verdict)));
  LF_TRY_VOID(ReadThinned(row, id, std::get<Measurement>(evaluation.verdict)));
  if (notes) {
    LF_TRY(evaluation.notes, ParseListText(*notes));
  }
  LF_TRY(evaluation.conditions, conditions_.Find(conditions));
  if (evaluation.conditions->hardware.device == DeviceKind::kCuda) {
    LF_TRY(std::get<Measurement>(evaluation.verdict).device, states_.Find(id));
  }
  return result;
}

Result<StoredResult> ResultTable::Find(ResultId id) {
  LF_TRY(Query row, connection_.Start("SELECT * FROM results WHERE id = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return Damaged("results", id);
  return ReadRow(row, id);
}

Result<std::optional<StoredResult>> ResultTable::FindTrusted(ResultId id) {
  LF_TRY(StoredResult row, Find(id));
  LF_TRY(const Figures figures, FiguresOf(row));
  if (figures.is_suspect) return std::nullopt;
  return row;
}

Result<ResultTable::Figures> ResultTable::FiguresOf(const StoredResult& row) {
  LF_TRY(const Marks marks, MarksOf(row.row));
  const Measurement& measurement = row.evaluation.measurement();
  Figures figures{.is_suspect = marks.is_suspect,
                  .is_foreign = marks.is_foreign,
                  .grade = measurement.grade,
                  .spread = measurement.spread};
  LF_TRY(const auto original, copies_.OriginalOf(row.row));
  std::optional<StoredResult> copied;
  if (original) {
    LF_TRY(copied, Find(*original));
    LF_TRY(const Marks of_original, MarksOf(*original));
    figures.is_copy = true;
    figures.is_suspect |= of_original.is_suspect;
  }
  const StoredResult& measured = copied ? *copied : row;
  figures.measured_at = measured.measured_at;
  if (!figures.is_suspect) {
    LF_TRY(figures.is_suspect, suspicions_.Covers(measured.worker, measured.measured_at));
  }
  return figures;
}

bool ResultTable::Satisfies(const Figures& figures, const ResultKey& key) {
  if (figures.is_suspect || figures.is_foreign) return false;
  if (figures.grade == Grade::kD || figures.grade > key.min_grade) return false;
  if (key.precision == 0) return true;
  // A grade C within 5 % comes from contended samples only: its small spread is chance.
  constexpr double kWidestGradeB = 0.05;
  return figures.spread <= key.precision &&
         (figures.grade != Grade::kC || key.precision > kWidestGradeB);
}

// Mostly the newest answers; then older runs are not searched.
Result<StoredAnswer> ResultTable::FindLatest(const ResultKey& key) {
  const ResultHash hash = HashOf(key);
  for (const std::size_t at_least : {std::size_t{1}, kMaxCandidates}) {
    LF_TRY(Candidates* const found, CandidatesFor(hash, at_least));
    if (found == nullptr) return nullptr;
    LF_TRY(const auto decided, FirstAmong(*found, key));
    if (decided) return *decided;
    if (found->ids.size() < found->asked) return nullptr;
  }
  return nullptr;
}

Result<std::optional<StoredAnswer>> ResultTable::FirstAmong(Candidates& found,
                                                            const ResultKey& key) {
  for (std::size_t i = 0; i < found.ids.size(); ++i) {
    const ResultId id = found.ids[i];
    if (i == found.figures.size()) {
      LF_TRY(StoredAnswer row, Read(found, id));
      LF_TRY(const Figures read, FiguresOf(*row));
      found.figures.push_back(read);
    }
    const Figures& figures = found.figures[i];
    if (figures.measured_at < key.measured_since) {
      if (figures.is_copy) continue;
      return StoredAnswer();
    }
    if (!Satisfies(figures, key)) continue;
    LF_TRY(StoredAnswer row, Read(found, id));
    if (Matches(row->evaluation, key)) return row;  // hashes may collide: the row decides
  }
  return std::nullopt;
}

Result<ResultTable::Candidates*> ResultTable::CandidatesFor(ResultHash hash, std::size_t at_least) {
  // Read before the search, because it may change meanwhile.
  const std::uint32_t generation = keys_.Generation(hash);
  if (const auto known = candidates_.find(hash);
      known != candidates_.end() && known->second.generation == generation &&
      (known->second.asked >= at_least || known->second.ids.size() < known->second.asked)) {
    return &known->second;
  }
  LF_TRY(auto ids, keys_.Find(connection_, hash, at_least));
  if (ids.empty()) return nullptr;
  if (candidates_.size() >= kMaxTuples) candidates_.clear();
  Candidates& candidates = candidates_[hash];
  candidates = {.generation = generation, .asked = at_least, .ids = std::move(ids)};
  return &candidates;
}

Result<StoredAnswer> ResultTable::Read(Candidates& candidates, ResultId id) {
  if (candidates.last == nullptr || candidates.last->row != id) {
    LF_TRY(StoredResult row, Find(id));
    candidates.last = std::make_shared<const StoredResult>(std::move(row));
  }
  return candidates.last;
}

Result<StoredAnswer> ResultTable::FindSameCode(const std::string& code_hash,
                                               const ProgramKey& program, const ResultKey& key) {
  LF_TRY(const auto ids, keys_.Find(connection_, HashOfCode(code_hash, key), kMaxOfOneCode));
  for (const ResultId id : ids) {
    LF_TRY(const bool is_of_program, IsOfProgram(id, program));
    if (!is_of_program) continue;
    LF_TRY(StoredResult result, Find(id));
    LF_TRY(const Figures figures, FiguresOf(result));
    if (figures.measured_at < key.measured_since) return nullptr;
    const Evaluation& evaluation = result.evaluation;
    // Hashes may collide: the row decides. A thinned row no longer has the samples of its figure.
    const bool is_same = evaluation.code_hash == code_hash && MatchesConditions(evaluation, key);
    if (is_same && !evaluation.measurement().thinned && Satisfies(figures, key)) {
      return std::make_shared<const StoredResult>(std::move(result));
    }
  }
  return nullptr;
}

Result<ResultTable::ThinnedRow> ResultTable::Thin(Query& row, const ThinningRule& rule,
                                                  std::int64_t retention) {
  const ResultId id = row.Int64();
  row.Rewind();
  LF_TRY(StoredResult stored, ReadRow(row, id));
  ThinnedRow thinned{.measured_at = stored.measured_at};
  if (thinned.measured_at >= rule.measured_before) return thinned;
  thinned.is_old = true;
  auto& measurement = std::get<Measurement>(stored.evaluation.verdict);
  thinned.samples_taken = RemoveSamples(rule, measurement);
  if (thinned.samples_taken == 0) return thinned;

  row.Rewind();
  thinned_rows_.Copy(row, 2);  // id, tree_key
  row.Skip();                  // content: recomputed, so that FindSame still finds the row
  const ConditionsId conditions = row.Int64();
  thinned_rows_.Add(ContentHash(stored.evaluation, conditions)).Add(conditions);
  thinned_rows_.Copy(row, 8);  // elapsed_ns .. iterations
  row.Skip();
  row.Skip();
  thinned_rows_.Add(BytesOf(measurement.samples_ns))
      .Add(std::span<const std::uint8_t>(measurement.sample_flags))
      .Copy(row, 6);  // flop_count .. measured_at
  row.Skip();
  thinned_rows_.AddChecksum().Copy(row, 2);  // the clocks
  row.IsNull() ? thinned_rows_.AddNull() : thinned_rows_.AddChecksum();
  thinned_rows_.Add(retention)
      .Add(measurement.thinned->samples_before)
      .Add(measurement.thinned->accepted_before)
      .AddChecksum();
  LF_TRY_VOID(thinned_rows_.EndRow());
  return thinned;
}

// One statement: a look-up asks for each result that it considers. Damage does not hide a mark:
// what is doubtful answers nothing.
Result<ResultTable::Marks> ResultTable::MarksOf(ResultId id) {
  LF_TRY(Query row,
         connection_.Start("SELECT EXISTS (SELECT 1 FROM suspect_results WHERE result = r.id), "
                           "EXISTS (SELECT 1 FROM foreign_results WHERE result = r.id) "
                           "FROM (SELECT ? AS id) r"));
  row.Add(id);
  LF_TRY_VOID(row.Next());
  Marks marks;
  marks.is_suspect = row.Int64() != 0;
  marks.is_foreign = row.Int64() != 0;
  return marks;
}

Result<IdRange> ResultTable::RangeSince(WallTime since) {
  LF_TRY(const ResultId last, connection_.Number("SELECT coalesce(max(id), 0) FROM results"));
  return storage::RangeSince(since, last, [&](ResultId id) -> Result<std::optional<WallTime>> {
    const auto row = Find(id);
    if (row) return row->measured_at;
    if (row.error().kind == ErrorKind::kCorrupt) return std::nullopt;
    return std::unexpected(row.error());
  });
}

Status ResultTable::Suspect(const ResultsSuspected& suspected, IdRange range) {
  const std::int64_t since = suspected.since.time_since_epoch().count();
  std::vector<ResultId> ids;
  {
    // A worker of another coordinator may have the same name, and the worker of a copy timed
    // nothing.
    LF_TRY(Query row, connection_.Start(R"sql(
      SELECT id, worker, measured_at FROM results r WHERE id BETWEEN ? AND ?
        AND NOT EXISTS (SELECT 1 FROM foreign_results WHERE result = r.id)
        AND NOT EXISTS (SELECT 1 FROM copied_results WHERE result = r.id AND original <> r.id))sql"));
    row.Add(range.first).Add(range.last);
    while (true) {
      LF_TRY(const bool more, row.Next());
      if (!more) break;
      const ResultId id = row.Int64();
      const bool is_of_worker = row.Text() == suspected.worker;
      if (is_of_worker && row.Int64() >= since) ids.push_back(id);
    }
  }
  for (const ResultId id : ids) {
    LF_TRY_VOID(Suspect(id, suspected.flagged_at, suspected.reason));
  }
  return {};
}

Result<std::optional<FigureName>> ResultTable::RepeatedBy(OutcomePlace outcome) {
  ResultId id = 0;
  {
    LF_TRY(Query row, connection_.Start("SELECT result FROM outcomes WHERE batch = ? AND "
                                        "sequence = ? AND source <> 'measured' AND result > 0"));
    row.Add(outcome.batch.value).Add(outcome.sequence);
    LF_TRY(const bool found, row.Next());
    if (!found) return std::nullopt;
    id = row.Int64();
  }
  auto name = NameOfFigure(id);
  if (!name && name.error().kind == ErrorKind::kCorrupt) return std::nullopt;
  return name;
}

Result<FigureName> ResultTable::NameOfFigure(ResultId id) {
  LF_TRY(const auto original, copies_.OriginalOf(id));
  return NameOf(original.value_or(id));
}

Result<FigureName> ResultTable::NameOf(ResultId id) {
  LF_TRY(const StoredResult measured, Find(id));
  LF_TRY(const auto elsewhere, foreign_.MeasuredAt(id));
  return FigureName{.subject = *measured.evaluation.subject,
                    .worker = measured.worker,
                    .measured_at = elsewhere.value_or(measured.measured_at)};
}

Result<std::vector<Doubt>> ResultTable::DoubtsAfter(std::int64_t number, std::uint32_t max) {
  LF_TRY(Query row, connection_.Start("SELECT id, result FROM doubts WHERE id > ? ORDER BY id"));
  row.Add(number);
  std::vector<Doubt> doubts;
  while (doubts.size() < max) {
    LF_TRY(const bool more, row.Next());
    if (!more) break;
    const std::int64_t id = row.Int64();
    auto doubt = DoubtAbout(row.Int64());
    if (doubt) {
      doubt->number = id;
      doubts.push_back(*std::move(doubt));
    } else if (doubt.error().kind != ErrorKind::kCorrupt) {
      return std::unexpected(std::move(doubt).error());
    } else if (id > newest_lost_doubt_) {
      newest_lost_doubt_ = id;
      log::Error("store.doubt_lost row={} reason={}", id, doubt.error().message);
    }
  }
  return doubts;
}

Result<Doubt> ResultTable::DoubtAbout(ResultId id) {
  LF_TRY(FigureName figure, NameOf(id));
  Doubt doubt{.subject = figure.subject,
              .worker = std::move(figure.worker),
              .measured_at = figure.measured_at};
  LF_TRY(Query row, connection_.Start("SELECT * FROM suspect_results WHERE result = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return Damaged("suspect_results", id);
  row.Skip();
  doubt.flagged_at = WallTime(Nanos(row.Int64()));
  doubt.reason = row.Text();
  if (!row.ChecksumMatches()) {  // as in MarksOf, damage does not hide a mark
    doubt.flagged_at = doubt.measured_at;
    doubt.reason = Damaged("suspect_results", id).error().message;
  }
  return doubt;
}

Status ResultTable::SuspectFigure(ResultId id, WallTime flagged_at, const std::string& reason) {
  LF_TRY_VOID(Suspect(id, flagged_at, reason));
  LF_TRY(const auto original, copies_.OriginalOf(id));
  return original ? Suspect(*original, flagged_at, reason) : Status{};
}

Status ResultTable::Suspect(ResultId id, WallTime flagged_at, const std::string& reason) {
  {
    // FindBest skips it anyway, but it would keep its place among the few of its program, and
    // slower schedules that are trusted would not enter.
    LF_TRY(Query query, connection_.Start("DELETE FROM best_schedules WHERE result = ?"));
    LF_TRY_VOID(query.Add(id).Run());
  }
  LF_TRY(Query query, connection_.Start("INSERT OR IGNORE INTO suspect_results VALUES (?,?,?,?)"));
  return query.Add(id).Add(flagged_at.time_since_epoch().count()).Add(reason).AddChecksum().Run();
}

}  // namespace loopfleet::storage
