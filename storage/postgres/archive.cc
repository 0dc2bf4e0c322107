#include "storage/postgres/archive.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <pqxx/pqxx>
#include <set>
#include <utility>
#include <vector>

#include "common/base/content_key.h"
#include "common/base/enum_names.h"
#include "common/job/outcome_json.h"
#include "storage/postgres/outcome_row.h"
#include "storage/postgres/postgres_address.h"
#include "storage/postgres/postgres_schema.h"

namespace loopfleet::storage {
namespace {

// A server that vanishes is noticed within about 20 s.
constexpr std::array kLimits = {"connect_timeout=10",     "keepalives_idle=5",
                                "keepalives_interval=5",  "keepalives_count=3",
                                "tcp_user_timeout=20000", "application_name=loopfleet-mirror"};

// A URL and a list of settings each take more settings in their own way.
std::string ConnectionText(const std::string& address) {
  if (address.find("://") == std::string::npos) {
    return fmt::format("{} {}", address, fmt::join(kLimits, " "));
  }
  const char first = address.find('?') == std::string::npos ? '?' : '&';
  return fmt::format("{}{}{}", address, first, fmt::join(kLimits, "&"));
}

std::string OneLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& byte : text) byte = byte == '\n' || byte == '\t' ? ' ' : byte;
  return text;
}

template <class... Kinds>
bool IsOneOf(const pqxx::sql_error& error) {
  return (... || (dynamic_cast<const Kinds*>(&error) != nullptr));
}

// Whether trying again can help. pqxx gives its more special errors no SQLSTATE. Classes 08, 40, 53
// and 57 pass: connection, a transaction that another one stopped, resources, an operator's order.
bool MayPass(const pqxx::sql_error& error) {
  if (IsOneOf<pqxx::insufficient_privilege, pqxx::data_exception,
              pqxx::integrity_constraint_violation, pqxx::syntax_error, pqxx::undefined_table,
              pqxx::undefined_column, pqxx::feature_not_supported>(error)) {
    return false;
  }
  const std::string state = error.sqlstate().substr(0, 2);
  return state.empty() || state == "08" || state == "40" || state == "53" || state == "57";
}

// Runs `work`, and says what it throws as an Error.
template <class Work>
auto Guarded(const char* what, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const pqxx::broken_connection& error) {
    const std::string text = OneLine(error.what());
    const bool is_missing = text.find("FATAL:  database") != std::string::npos ||
                            text.find("FATAL:  role") != std::string::npos;
    return Fail(is_missing ? ErrorKind::kInvalid : ErrorKind::kUnavailable,
                fmt::format("{}: {}", what, text));
  } catch (const pqxx::sql_error& error) {
    return Fail(MayPass(error) ? ErrorKind::kUnavailable : ErrorKind::kInvalid,
                fmt::format("{}: {}", what, OneLine(error.what())));
  } catch (const std::exception& error) {  // pqxx::in_doubt_error among them
    return Fail(ErrorKind::kUnavailable, fmt::format("{}: {}", what, OneLine(error.what())));
  }
}

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
      : connection(ConnectionText(options.url)), incarnation(options.incarnation) {}

  void Register(const std::string& name);
  int ConditionsId(pqxx::work& work, const Conditions& conditions);
  void MakePartitions(pqxx::work& work, const std::vector<Outcome>& outcomes);
  bool MovePosition(pqxx::work& work, const FeedPosition& before, const FeedPosition& after);
  void Copy(pqxx::work& work, const std::vector<Outcome>& outcomes);
  void NoteBest(pqxx::work& work, const std::vector<Outcome>& outcomes);

  pqxx::connection connection;
  const Uuid incarnation;
  int coordinator = 0;                   // coordinators.id
  std::int64_t appends = 0;              // coordinators.appends, as this last saw it
  std::map<ContentKey, int> conditions;  // conditions.id by key
  std::set<Month> months;                // that have a partition
};

PostgresArchive::PostgresArchive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PostgresArchive::~PostgresArchive() = default;

Result<std::unique_ptr<PostgresArchive>> PostgresArchive::Open(const Options& options) {
  using Opened = Result<std::unique_ptr<PostgresArchive>>;
  LF_TRY_VOID(CheckPostgresAddress(options.url));
  return Guarded("PostgreSQL", [&]() -> Opened {
    auto impl = std::make_unique<Impl>(options);
    LF_TRY_VOID(BringToVersion(impl->connection));
    impl->Register(options.name);
    return std::unique_ptr<PostgresArchive>(new PostgresArchive(std::move(impl)));
  });
}

void PostgresArchive::Impl::Register(const std::string& name) {
  pqxx::work work(connection);
  const auto row = work.exec_params1(
      "INSERT INTO coordinators (incarnation, name) VALUES ($1::uuid, $2) "
      "ON CONFLICT (incarnation) DO UPDATE SET name = excluded.name RETURNING id",
      incarnation.ToString(), PostgresText(name));
  coordinator = row[0].as<int>();
  work.commit();
}

Result<FeedPosition> PostgresArchive::Position() {
  return Guarded("reading the position", [&]() -> Result<FeedPosition> {
    pqxx::work work(impl_->connection);
    FeedPosition position;
    const auto row = work.exec_params1("SELECT last_batch, appends FROM coordinators WHERE id = $1",
                                       impl_->coordinator);
    position.last.value = row[0].as<std::uint64_t>();
    impl_->appends = row[1].as<std::int64_t>();
    for (const auto& open :
         work.exec_params("SELECT batch, sequence FROM open_batches WHERE coordinator = $1",
                          impl_->coordinator)) {
      position.open[BatchId{open[0].as<std::uint64_t>()}] = open[1].as<std::uint64_t>();
    }
    return position;
  });
}

Status PostgresArchive::Append(const FeedPosition& before, const FeedStep& step) {
  return Guarded("writing outcomes", [&]() -> Status {
    pqxx::work work(impl_->connection);
    if (!impl_->MovePosition(work, before, step.after)) {
      return Fail(ErrorKind::kExists, "another mirror writes this coordinator's outcomes");
    }
    impl_->MakePartitions(work, step.outcomes);
    impl_->Copy(work, step.outcomes);
    impl_->NoteBest(work, step.outcomes);
    work.commit();
    ++impl_->appends;
    for (const Outcome& outcome : step.outcomes) impl_->months.insert(MonthOf(outcome.finished_at));
    return {};
  });
}

// False: another mirror has moved it.
bool PostgresArchive::Impl::MovePosition(pqxx::work& work, const FeedPosition& before,
                                         const FeedPosition& after) {
  const auto moved = work.exec_params0(
      "UPDATE coordinators SET last_batch = $3, appends = appends + 1, mirrored_at = now() "
      "WHERE id = $1 AND appends = $2",
      coordinator, appends, after.last.value);
  if (moved.affected_rows() != 1) return false;
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
  const std::string hardware = PostgresJson(HardwareJson(had.hardware));
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
      PostgresText(had.compiler.llvm),
      PostgresText(fmt::format("{} {}", had.compiler.tier, had.compiler.revision)), had.threads,
      std::string(EnumName(had.cache)), PostgresText(had.policy), PostgresText(had.isolation),
      hardware);
  return conditions[key] = row[0].as<int>();
}

void PostgresArchive::Impl::Copy(pqxx::work& work, const std::vector<Outcome>& outcomes) {
  std::vector<OutcomeRow> rows;  // before the COPY, during which no statement can run
  for (const Outcome& outcome : outcomes) {
    std::optional<int> id;
    if (outcome.evaluation.conditions) id = ConditionsId(work, *outcome.evaluation.conditions);
    rows.push_back(RowOf(coordinator, outcome, id));
  }
  pqxx::stream_to stream(work, "outcomes", OutcomeColumns());
  std::array<const char*, kOutcomeColumns> values{};  // null: NULL
  for (const OutcomeRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) values[i] = row[i] ? row[i]->c_str() : nullptr;
    stream << values;
  }
  stream.complete();
}

// The fastest of each benchmark and conditions in these outcomes: one statement, however many
// benchmarks they have. It reads no outcome back: a plan that scans them would get slower with
// each.
void PostgresArchive::Impl::NoteBest(pqxx::work& work, const std::vector<Outcome>& outcomes) {
  std::map<std::pair<std::string, std::string>, const Outcome*> fastest;
  const auto high = [](const Outcome& outcome) {
    return outcome.evaluation.measurement().elapsed_high_ns;
  };
  for (const Outcome& outcome : outcomes) {
    const Evaluation& evaluation = outcome.evaluation;
    const bool counts = outcome.source == OutcomeSource::kMeasured && evaluation.is_timed() &&
                        !evaluation.same_code && evaluation.measurement().grade != Grade::kD;
    if (!counts) continue;
    std::string benchmark =
        std::visit([](const auto& source) { return PostgresText(source.text); }, outcome.benchmark);
    std::string place = PostgresText(PlaceText(*evaluation.conditions));
    const Outcome*& best = fastest[{std::move(benchmark), std::move(place)}];
    if (best == nullptr || high(outcome) < high(*best)) best = &outcome;
  }
  if (fastest.empty()) return;
  Json found = Json::array();
  for (const auto& [place, outcome] : fastest) {
    const Conditions& had = *outcome->evaluation.conditions;
    found.push_back({{"benchmark", place.first},
                     {"hardware_class", had.hardware.hardware_class},
                     {"threads", had.threads},
                     {"cache", EnumName(had.cache)},
                     {"batch", outcome->job.batch.value},
                     {"sequence", outcome->sequence},
                     {"finished_at", PostgresTime(outcome->finished_at)},
                     {"elapsed_high_ns", high(*outcome)}});
  }
  work.exec_params0(
      "WITH found AS (SELECT md5(benchmark)::uuid AS benchmark_key, f.* "
      "FROM jsonb_to_recordset($2::jsonb) AS f (benchmark text, hardware_class text, "
      "threads integer, cache text, batch bigint, sequence bigint, finished_at timestamptz, "
      "elapsed_high_ns double precision)) "
      "INSERT INTO best SELECT benchmark_key, hardware_class, threads, cache, $1, batch, sequence, "
      "finished_at, elapsed_high_ns FROM found WHERE NOT EXISTS (SELECT FROM best b WHERE "
      "(b.benchmark_key, b.hardware_class, b.threads, b.cache) = (found.benchmark_key, "
      "found.hardware_class, found.threads, found.cache) AND "
      "b.elapsed_high_ns <= found.elapsed_high_ns) "
      "ON CONFLICT (benchmark_key, hardware_class, threads, cache) DO UPDATE SET "
      "coordinator = excluded.coordinator, batch = excluded.batch, sequence = excluded.sequence, "
      "finished_at = excluded.finished_at, elapsed_high_ns = excluded.elapsed_high_ns "
      "WHERE excluded.elapsed_high_ns < best.elapsed_high_ns",
      coordinator, PostgresJson(found));
}

}  // namespace loopfleet::storage
