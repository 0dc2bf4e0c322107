#include "storage/sqlite/tables/best_table.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <variant>

#include "storage/sqlite/damage.h"
#include "storage/sqlite/tables/job_text.h"

namespace loopfleet::storage {
namespace {

std::span<const std::uint8_t> BytesOf(const ContentKey& key) { return key.bytes; }

std::string PlaceOf(const ProgramKey& program, const Conditions& conditions) {
  std::string place(reinterpret_cast<const char*>(program.bytes.data()), program.bytes.size());
  place += EnumName(conditions.cache);
  place.append(reinterpret_cast<const char*>(&conditions.threads), sizeof conditions.threads);
  place += conditions.hardware.hardware_class;
  return place;
}

// Binds or reads the first four columns of the key.
void AddPlace(Query& query, const ProgramKey& program, const Conditions& conditions) {
  query.Add(BytesOf(program))
      .Add(conditions.hardware.hardware_class)
      .Add(conditions.threads)
      .Add(EnumName(conditions.cache));
}

// A row without its figures. kCorrupt: it is damaged.
Result<BestSchedule> ReadRow(Query& row) {
  for (int column = 0; column < 6; ++column) row.Skip();  // the key, elapsed_ns
  BestSchedule best{.measured = {.row = row.Int64()}};
  best.job.batch.value = row.Int<std::uint64_t>();
  best.job.index = row.Int<std::uint32_t>();
  auto uri = row.OptionalText();
  auto ir = row.OptionalText();
  const std::string actions(row.Text());
  const auto options = row.OptionalText();
  if (!row.ChecksumMatches()) return Damaged("best_schedules", best.job);
  if (uri) best.spec.source = looptree::BenchmarkUri{*std::move(uri)};
  if (ir) best.spec.source = looptree::IrText{*std::move(ir)};
  LF_TRY(best.spec.actions, ParseActionsText(actions));
  StoredOptions stored{.spec = best.spec, .accepted_at = {}};
  if (options) LF_TRY_VOID(ParseOptionsText(*options, stored));
  return best;
}

}  // namespace

Result<bool> BestTable::Note(const ProgramKey& program, const Outcome& outcome, ResultId result) {
  const Evaluation& evaluation = outcome.evaluation;
  const Conditions& conditions = *evaluation.conditions;
  const std::string place = PlaceOf(program, conditions);
  auto* known = places_.Find(place);
  if (known == nullptr) {
    LF_TRY(Entries entries, EntriesOf(program, conditions));
    known = places_.Add(place, std::move(entries));
  }
  Entries& entries = known->second;  // the fastest first
  const Entry entered{.subject = *evaluation.subject,
                      .elapsed_ns = evaluation.measurement().elapsed_ns};
  const auto same = std::ranges::find(entries, entered.subject, &Entry::subject);
  if (same != entries.end()) {
    entries.erase(same);
  } else if (entries.size() == kMostOfPlace) {
    if (entered.elapsed_ns >= entries.back().elapsed_ns) return false;
    LF_TRY_VOID(Remove(program, conditions, entries.back().subject));
    entries.pop_back();
  }
  const auto slower = std::ranges::upper_bound(entries, entered.elapsed_ns, {}, &Entry::elapsed_ns);
  entries.insert(slower, entered);
  LF_TRY_VOID(Save(program, outcome, result));
  return true;
}

Result<BestTable::Entries> BestTable::EntriesOf(const ProgramKey& program,
                                                const Conditions& conditions) {
  LF_TRY(Query row, connection_.Start(R"sql(
    SELECT subject, elapsed_ns FROM best_schedules
    WHERE program = ? AND hardware_class = ? AND threads = ? AND cache = ?
    ORDER BY elapsed_ns)sql"));
  AddPlace(row, program, conditions);
  Entries entries;
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) return entries;
    Entry& entry = entries.emplace_back();
    const auto subject = row.Blob();
    const std::size_t bytes = std::min(subject.size(), entry.subject.bytes.size());
    std::memcpy(entry.subject.bytes.data(), subject.data(), bytes);
    entry.elapsed_ns = row.Double();
  }
}

Status BestTable::Save(const ProgramKey& program, const Outcome& outcome, ResultId result) {
  LF_TRY_VOID(jobs_.Flush());
  const auto job = jobs_.Find(outcome.job);
  // Nothing tells what a damaged job asked: its figure answers equal jobs, and is not found here.
  if (!job && job.error().kind == ErrorKind::kCorrupt) return {};
  if (!job) return std::unexpected(job.error());
  if (!*job) return {};
  JobSpec schedule = **job;
  schedule.tag.clear();
  schedule.deadline_s = 0;
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&schedule.source);
  const auto* ir = std::get_if<looptree::IrText>(&schedule.source);
  LF_TRY(const auto options, OptionsText(schedule, {}));
  const Evaluation& evaluation = outcome.evaluation;
  LF_TRY(Query query, connection_.Start("INSERT OR REPLACE INTO best_schedules "
                                        "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  AddPlace(query, program, *evaluation.conditions);
  query.Add(BytesOf(*evaluation.subject))
      .Add(evaluation.measurement().elapsed_ns)
      .Add(result)
      .Add(outcome.job.batch.value)
      .Add(outcome.job.index);
  uri ? query.Add(uri->text) : query.AddNull();
  ir ? query.Add(ir->text) : query.AddNull();
  return query.Add(ActionsText(schedule.actions)).Add(options).AddChecksum().Run();
}

Status BestTable::Remove(const ProgramKey& program, const Conditions& conditions,
                         const SubjectKey& subject) {
  LF_TRY(Query query, connection_.Start(R"sql(
    DELETE FROM best_schedules
    WHERE program = ? AND hardware_class = ? AND threads = ? AND cache = ? AND subject = ?)sql"));
  AddPlace(query, program, conditions);
  return query.Add(BytesOf(subject)).Run();
}

Result<std::vector<BestSchedule>> BestTable::Find(const BestQuery& query) {
  std::vector<BestSchedule> found;
  {
    LF_TRY(Query row, connection_.Start(R"sql(
      SELECT * FROM best_schedules
      WHERE program = ?1 AND threads = ?2 AND cache = ?3 AND (?4 = '' OR hardware_class = ?4)
      ORDER BY elapsed_ns)sql"));
    row.Add(BytesOf(query.program))
        .Add(query.threads)
        .Add(EnumName(query.cache))
        .Add(query.hardware_class);
    while (true) {
      LF_TRY(const bool more, row.Next());
      if (!more) break;
      auto best = ReadRow(row);
      if (best) found.push_back(*std::move(best));
    }
  }
  std::vector<BestSchedule> trusted;
  for (BestSchedule& best : found) {
    if (trusted.size() == query.max) break;
    auto result = results_.FindTrusted(best.measured.row);
    if (!result && result.error().kind != ErrorKind::kCorrupt) {
      return std::unexpected(std::move(result).error());
    }
    if (!result || !*result) continue;
    best.measured = **std::move(result);
    trusted.push_back(std::move(best));
  }
  return trusted;
}

}  // namespace loopfleet::storage
