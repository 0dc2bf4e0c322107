#include "storage/postgres/archive.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <pqxx/pqxx>
#include <set>
#include <utility>
#include <vector>

#include "common/base/content_key.h"
#include "common/base/enum_names.h"
#include "common/job/outcome_json.h"
#include "storage/postgres/best_rows.h"
#include "storage/postgres/conditions_row.h"
#include "storage/postgres/connection.h"
#include "storage/postgres/outcome_row.h"
#include "storage/postgres/postgres_address.h"
#include "storage/postgres/postgres_schema.h"

namespace loopfleet::storage {
namespace {

struct Month {
  int year = 0;
  unsigned month = 0;
  friend auto operator<=>(const Month&, const Month&) = default;
};
Month MonthOf(WallTime time) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(time));
  return {static_cast<int>(day.year()), static_cast<unsigned>(day.month())};
}
Month After(Month month) {
  return month.month == 12 ? Month{month.year + 1, 1} : Month{month.year, month.month + 1};
}

std::string PlaceText(const Conditions& conditions) {
  return fmt::format("{} {} {}", conditions.hardware.hardware_class, conditions.threads,
                     EnumName(conditions.cache));
}

}  // namespace

struct PostgresArchive::Impl {
  explicit Impl(const Options& options)
      : connection(ConnectionText(options.url, "loopfleet-mirror")),
        incarnation(options.incarnation),
        first_own_batch(options.first_own_batch) {}

  void LimitWaits();
  void Register(const std::string& name);
  int ConditionsId(pqxx::work& work, const Conditions& conditions);
  int InternConditions(pqxx::work& work, const Conditions& conditions);
  void MakePartitions(pqxx::work& work, const std::vector<Outcome>& outcomes);
  std::optional<FeedStep> WithoutCopied(pqxx::work& work, const FeedStep& step);
  bool MovePosition(pqxx::work& work, const FeedPosition& before, const FeedPosition& after);
  void Copy(pqxx::work& work, const FeedStep& step);
  void NoteDoubts(pqxx::work& work, const std::vector<Doubt>& doubts);

  pqxx::connection connection;
  const Uuid incarnation;
  const BatchId first_own_batch;
  int coordinator = 0;                   // coordinators.id
  std::int64_t appends = 0;              // coordinators.appends, as this last saw it
  std::int64_t appends_of_others = 0;    // their sum: whether others may have changed `best`
  std::map<ContentKey, int> conditions;  // conditions.id by key
  // The latest of each host and their id: telling that they are the same is cheaper than the key.
  std::map<std::string, std::pair<Conditions, int>> conditions_of_host;
  std::set<Month> months;  // that have a partition
  const SystemClock clock;
  BestRows best{clock};
};

PostgresArchive::PostgresArchive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PostgresArchive::~PostgresArchive() = default;

Result<std::unique_ptr<PostgresArchive>> PostgresArchive::Open(const Options& options) {
  using Opened = Result<std::unique_ptr<PostgresArchive>>;
  LF_TRY_VOID(CheckPostgresAddress(options.url));
  return Guarded("PostgreSQL", [&]() -> Opened {
    auto impl = std::make_unique<Impl>(options);
    LF_TRY_VOID(BringToVersion(impl->connection));
    impl->LimitWaits();
    impl->Register(options.name);
    return std::unique_ptr<PostgresArchive>(new PostgresArchive(std::move(impl)));
  });
}

// For a locked table and for a server whose disk hangs: an error can be told and tried again. The
// longest statement is the COPY of a step over a slow line. Migrations may take longer.
void PostgresArchive::Impl::LimitWaits() {
  pqxx::nontransaction work(connection);
  work.exec("SET lock_timeout = '5s'; SET statement_timeout = '5min'");
}

void PostgresArchive::Impl::Register(const std::string& name) {
  pqxx::work work(connection);
  const auto row = work.exec_params1(
      "INSERT INTO coordinators (incarnation, name) VALUES ($1::uuid, $2) "
      "ON CONFLICT (incarnation) DO UPDATE SET name = excluded.name RETURNING id",
      incarnation.ToString(), PostgresText(name));
  coordinator = row[0].as<int>();
  work.commit();
  best.EnterFormer(connection);
}

Result<ArchivePosition> PostgresArchive::Position() {
  return Guarded("reading the position", [&]() -> Result<ArchivePosition> {
    pqxx::work work(impl_->connection);
    ArchivePosition position;
    const auto row =
        work.exec_params1("SELECT last_batch, appends, last_doubt FROM coordinators WHERE id = $1",
                          impl_->coordinator);
    position.outcomes.last.value = row[0].as<std::uint64_t>();
    impl_->appends = row[1].as<std::int64_t>();
    position.doubt = row[2].as<std::int64_t>();
    for (const auto& open :
         work.exec_params("SELECT batch, sequence FROM open_batches WHERE coordinator = $1",
                          impl_->coordinator)) {
      position.outcomes.open[BatchId{open[0].as<std::uint64_t>()}] = open[1].as<std::uint64_t>();
    }
    return position;
  });
}

Status PostgresArchive::Append(const FeedPosition& before, const FeedStep& step,
                               const std::vector<Doubt>& doubts) {
  return Guarded("writing outcomes", [&]() -> Status {
    pqxx::work work(impl_->connection);
    if (!impl_->MovePosition(work, before, step.after)) {
      return Fail(ErrorKind::kExists, "another mirror writes this coordinator's outcomes");
    }
    const std::optional<FeedStep> left = impl_->WithoutCopied(work, step);
    const FeedStep& fresh = left ? *left : step;
    impl_->MakePartitions(work, fresh.outcomes);
    impl_->Copy(work, fresh);
    impl_->NoteDoubts(work, doubts);  // takes figures out of `best`, and keeps others from entering
    impl_->best.Note(work, impl_->coordinator, fresh.outcomes);
    work.commit();
    ++impl_->appends;
    for (const Outcome& outcome : fresh.outcomes)
      impl_->months.insert(MonthOf(outcome.finished_at));
    return {};
  });
}

// Leaves out what an earlier incarnation of a restored database has copied. What it finished after
// the snapshot has another moment, so that is another outcome, even of the same job. nullopt: none
// of them was copied.
std::optional<FeedStep> PostgresArchive::Impl::WithoutCopied(pqxx::work& work,
                                                             const FeedStep& step) {
  const std::vector<Outcome>& outcomes = step.outcomes;
  Json inherited = Json::array();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    if (outcome.job.batch >= first_own_batch) continue;
    inherited.push_back({{"n", i},
                         {"batch", outcome.job.batch.value},
                         {"index", outcome.job.index},
                         {"sequence", outcome.sequence},
                         {"finished_at", PostgresTime(outcome.finished_at)},
                         {"worker", PostgresText(outcome.worker)}});
  }
  if (inherited.empty()) return std::nullopt;
  std::set<std::size_t> copied;
  // LATERAL and LIMIT: each is one look into the primary key, whatever the planner thinks of sizes.
  for (const auto& row : work.exec_params(
           "SELECT f.n FROM jsonb_to_recordset($1::jsonb) AS f (n integer, batch bigint, "
           "index integer, sequence bigint, finished_at timestamptz, worker text) "
           "CROSS JOIN coordinators k CROSS JOIN LATERAL (SELECT FROM outcomes o WHERE "
           "(o.coordinator, o.batch, o.sequence, o.finished_at) = "
           "(k.id, f.batch, f.sequence, f.finished_at) AND "
           "(o.index, o.worker) = (f.index, f.worker) LIMIT 1) o",
           PostgresJson(inherited))) {
    copied.insert(row[0].as<std::size_t>());
  }
  if (copied.empty()) return std::nullopt;
  FeedStep fresh;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (copied.contains(i)) continue;
    const auto repeated = step.repeated.find(i);
    if (repeated != step.repeated.end()) fresh.repeated[fresh.outcomes.size()] = repeated->second;
    fresh.outcomes.push_back(outcomes[i]);
  }
  return fresh;
}

// False: another mirror has moved it.
bool PostgresArchive::Impl::MovePosition(pqxx::work& work, const FeedPosition& before,
                                         const FeedPosition& after) {
  const auto moved = work.exec_params(
      "UPDATE coordinators SET last_batch = $3, appends = appends + 1, mirrored_at = now() "
      "WHERE id = $1 AND appends = $2 "
      "RETURNING (SELECT coalesce(sum(appends), 0) FROM coordinators WHERE id <> $1)",
      coordinator, appends, after.last.value);
  if (moved.empty()) return false;
  const auto of_others = moved[0][0].as<std::int64_t>();
  if (std::exchange(appends_of_others, of_others) != of_others) best.Forget();
  for (const auto& [batch, sequence] : before.open) {
    if (after.open.contains(batch)) continue;
    work.exec_params0("DELETE FROM open_batches WHERE coordinator = $1 AND batch = $2", coordinator,
                      batch.value);
  }
  for (const auto& [batch, sequence] : after.open) {
    const auto known = before.open.find(batch);
    if (known != before.open.end() && known->second == sequence) continue;
    work.exec_params0(
        "INSERT INTO open_batches VALUES ($1, $2, $3) "
        "ON CONFLICT (coordinator, batch) DO UPDATE SET sequence = excluded.sequence",
        coordinator, batch.value, sequence);
  }
  return true;
}

void PostgresArchive::Impl::MakePartitions(pqxx::work& work, const std::vector<Outcome>& outcomes) {
  std::set<Month> missing;
  for (const Outcome& outcome : outcomes) {
    const Month month = MonthOf(outcome.finished_at);
    if (!months.contains(month)) missing.insert(month);
  }
  if (missing.empty()) return;
  work.exec(fmt::format("SELECT pg_advisory_xact_lock({})", kSchemaLock));
  for (const Month& month : missing) {
    const Month next = After(month);
    work.exec0(fmt::format(
        "CREATE TABLE IF NOT EXISTS outcomes_{0:04}_{1:02} PARTITION OF outcomes "
        "FOR VALUES FROM ('{0:04}-{1:02}-01 00:00+00') TO ('{2:04}-{3:02}-01 00:00+00')",
        month.year, month.month, next.year, next.month));
  }
}

int PostgresArchive::Impl::ConditionsId(pqxx::work& work, const Conditions& had) {
  auto& [latest, id] = conditions_of_host[had.hardware.host];
  if (id == 0 || latest != had) {
    id = InternConditions(work, had);
    latest = had;
  }
  return id;
}

int PostgresArchive::Impl::InternConditions(pqxx::work& work, const Conditions& had) {
  const std::string hardware = PostgresJson(FactsJson(had.hardware));
  const ContentKey key = ContentKey::Of(fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", hardware, had.hardware.host, had.compiler.llvm,
      had.compiler.tier, had.compiler.revision, PlaceText(had), had.policy, had.isolation));
  if (const auto known = conditions.find(key); known != conditions.end()) return known->second;
  const auto row = work.exec_params1(
      "INSERT INTO conditions (key, device, hardware_class, model, isa, host, llvm, lowering, "
      "threads, cache, policy, isolation, hardware) "
      "VALUES (decode($1, 'hex'), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::jsonb) "
      "ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING id",
      key.ToString(), std::string(EnumName(had.hardware.device)),
      PostgresText(had.hardware.hardware_class), PostgresText(had.hardware.model),
      PostgresText(had.hardware.isa), PostgresText(had.hardware.host),
      PostgresText(had.compiler.llvm), PostgresText(LoweringText(had.compiler)),
      static_cast<std::int32_t>(had.threads),  // as in outcome_row.cc
      std::string(EnumName(had.cache)), PostgresText(had.policy), PostgresText(had.isolation),
      hardware);
  return conditions[key] = row[0].as<int>();
}

void PostgresArchive::Impl::Copy(pqxx::work& work, const FeedStep& step) {
  std::vector<std::optional<int>> ids;  // before the COPY, during which no statement can run
  for (const Outcome& outcome : step.outcomes) {
    const auto& had = outcome.evaluation.conditions;
    ids.push_back(had ? std::optional(ConditionsId(work, *had)) : std::nullopt);
  }
  pqxx::stream_to stream(work, "outcomes", OutcomeColumns());
  std::array<const char*, kOutcomeColumns> values{};  // null: NULL
  for (std::size_t i = 0; i < step.outcomes.size(); ++i) {
    const auto repeated = step.repeated.find(i);
    const OutcomeRow row = RowOf(coordinator, step.outcomes[i], ids[i],
                                 repeated == step.repeated.end() ? nullptr : &repeated->second);
    for (std::size_t j = 0; j < row.size(); ++j) values[j] = row[j] ? row[j]->c_str() : nullptr;
    stream << values;
  }
  stream.complete();
}

// A figure in doubt leaves `best`.
void PostgresArchive::Impl::NoteDoubts(pqxx::work& work, const std::vector<Doubt>& doubts) {
  if (doubts.empty()) return;
  Json found = Json::array();
  for (const Doubt& doubt : doubts) {
    found.push_back({{"tree_key", PostgresBytes(doubt.subject.bytes)},
                     {"measured_at", PostgresTime(doubt.measured_at)},
                     {"worker", PostgresText(doubt.worker)},
                     {"flagged_at", PostgresTime(doubt.flagged_at)},
                     {"reason", PostgresText(doubt.reason)}});
  }
  work.exec_params0(
      "WITH found AS (INSERT INTO doubts SELECT * FROM jsonb_to_recordset($1::jsonb) AS f "
      "(tree_key bytea, measured_at timestamptz, worker text, flagged_at timestamptz, reason text) "
      "ON CONFLICT DO NOTHING RETURNING *) "
      "DELETE FROM best b USING found d WHERE "
      "(b.tree_key, b.finished_at, b.worker) = (d.tree_key, d.measured_at, d.worker)",
      PostgresJson(found));
  best.Forget();
  work.exec_params0("UPDATE coordinators SET last_doubt = $2 WHERE id = $1", coordinator,
                    doubts.back().number);
}

}  // namespace loopfleet::storage
