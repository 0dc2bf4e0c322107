#include "storage/postgres/shared_results.h"

#include <chrono>
#include <exception>
#include <map>
#include <optional>
#include <pqxx/pqxx>
#include <tuple>
#include <utility>

#include "common/base/enum_names.h"
#include "common/job/plausibility.h"
#include "storage/postgres/conditions_row.h"
#include "storage/postgres/connection.h"
#include "storage/postgres/outcome_row.h"
#include "storage/postgres/postgres_address.h"
#include "storage/postgres/postgres_schema.h"

namespace loopfleet::storage {
namespace {

// The key without its tree. Nearly all keys of a submission demand the same, so a statement for
// each demand is mostly one.
auto DemandOf(const ResultKey& key) {
  return std::tuple(key.hardware_class, key.compiler.llvm, LoweringText(key.compiler), key.threads,
                    std::string(EnumName(key.cache)), key.policy,
                    std::string(EnumName(key.min_grade)), key.precision, key.measured_since);
}
using Demand = decltype(DemandOf(ResultKey()));

// A grade C within 5 % comes from contended samples only: its small spread is chance, as in
// SQLite's ResultTable::Satisfies. Grades sort as letters.
constexpr const char* kFindStatement = "find";
constexpr const char* kFind = R"sql(
SELECT t.n, replace(k.incarnation::text, '-', ''), o.batch, o.index, o.worker,
       (extract(epoch FROM o.finished_at) * 1000000)::bigint, o.flop_count, o.scratch_bytes,
       o.code_hash, to_json(o.notes), o.elapsed_ns, o.elapsed_low_ns, o.elapsed_high_ns,
       o.elapsed_min_ns, o.elapsed_mean_ns, o.spread, o.grade, o.iterations,
       coalesce(to_json(o.samples_ns), '[]'), coalesce(o.sample_flags, ''),
       coalesce(o.clock_before_mhz, o.clock_mhz, 0), coalesce(o.clock_after_mhz, o.clock_mhz, 0),
       o.hardware, o.isolation
FROM unnest($1::bytea[]) WITH ORDINALITY AS t (key, n)
CROSS JOIN LATERAL (
  SELECT o.*, c.hardware, c.isolation FROM outcomes o JOIN conditions c ON c.id = o.conditions
  WHERE o.tree_key = t.key AND o.elapsed_ns IS NOT NULL AND o.source = 'measured'
    AND o.coordinator <> $2 AND c.device = 'cpu' AND c.hardware_class = $3 AND c.llvm = $4
    AND c.lowering = $5 AND c.threads = $6 AND c.cache = $7 AND c.policy = $8
    AND o.samples_before IS NULL AND o.grade <= $9 AND o.grade <> 'D' AND o.finished_at >= $10::timestamptz
    AND ($11::float8 = 0 OR (o.spread <= $11 AND (o.grade <> 'C' OR $11 > 0.05)))
    AND NOT EXISTS (SELECT FROM doubts d WHERE d.tree_key = o.tree_key
                    AND d.measured_at = o.finished_at AND d.worker = o.worker)
  ORDER BY o.finished_at DESC LIMIT 1) o
JOIN coordinators k ON k.id = o.coordinator)sql";

// Reads the columns of kFind after the first one.
StoredResult ReadRow(const pqxx::row& row, const ResultKey& key) {
  int column = 1;
  const auto text = [&] { return row[column++].as<std::string>(); };
  const auto number = [&] { return row[column++].as<double>(); };
  const auto count = [&] { return row[column++].as<std::uint64_t>(); };
  StoredResult result;
  Elsewhere& elsewhere = result.elsewhere.emplace();
  elsewhere.coordinator = Uuid::Parse(text()).value_or(Uuid{});
  elsewhere.job.batch.value = count();
  elsewhere.job.index = static_cast<std::uint32_t>(count());
  result.worker = text();
  result.measured_at = WallTime(std::chrono::microseconds(count()));
  Evaluation& evaluation = result.evaluation;
  evaluation.subject = key.subject;
  evaluation.flop_count = count();
  evaluation.scratch_bytes = count();
  evaluation.code_hash = text();
  evaluation.notes = Json::parse(text()).get<std::vector<std::string>>();
  Measurement measurement;
  measurement.elapsed_ns = number();
  measurement.elapsed_low_ns = number();
  measurement.elapsed_high_ns = number();
  measurement.elapsed_min_ns = number();
  measurement.elapsed_mean_ns = number();
  measurement.spread = number();
  measurement.grade = ValueNamed<Grade>(text()).value_or(Grade::kC);
  measurement.iterations_per_sample = count();
  measurement.samples_ns = Json::parse(text()).get<std::vector<double>>();
  const pqxx::binarystring flags(row[column++]);
  measurement.sample_flags.assign(flags.begin(), flags.end());
  measurement.clock_before_mhz = number();
  measurement.clock_after_mhz = number();
  evaluation.verdict = std::move(measurement);
  const HardwareFacts hardware = FactsOf(DeviceKind::kCpu, Json::parse(text()));
  evaluation.conditions = Conditions{.hardware = hardware,
                                     .compiler = key.compiler,
                                     .threads = key.threads,
                                     .cache = key.cache,
                                     .policy = key.policy,
                                     .isolation = text()};
  return result;
}

// nullopt: the row cannot be read, or makes no sense.
std::optional<StoredResult> ReadSoundRow(const pqxx::row& row, const ResultKey& key) {
  try {
    StoredResult result = ReadRow(row, key);
    if (!WhyNoMeasurement(result.evaluation.measurement())) return result;
  } catch (const std::exception&) {  // a NULL, a number out of range, JSON of another kind
  }
  return std::nullopt;
}

}  // namespace

struct SharedResults::Impl {
  Impl(const std::string& url, const Uuid& own)
      : connection(ConnectionText(url, "loopfleet-coordinator")), incarnation(own) {
    pqxx::nontransaction work(connection);
    work.exec("SET statement_timeout = '5s'; SET lock_timeout = '5s'");  // of a locked table, say
  }

  void Find(pqxx::transaction_base& work, std::span<const ResultKey> keys,
            const std::vector<std::size_t>& which, std::vector<StoredAnswer>& answers) const;

  pqxx::connection connection;
  const Uuid incarnation;
  int coordinator = 0;  // coordinators.id of the own one; 0: it is not there yet
};

SharedResults::SharedResults(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SharedResults::~SharedResults() = default;

Result<std::unique_ptr<SharedResults>> SharedResults::Open(const std::string& url,
                                                           const Uuid& incarnation) {
  using Opened = Result<std::unique_ptr<SharedResults>>;
  LF_TRY_VOID(CheckPostgresAddress(url));
  return Guarded("PostgreSQL", [&]() -> Opened {
    auto impl = std::make_unique<Impl>(url, incarnation);
    LF_TRY_VOID(BringToVersion(impl->connection));
    impl->connection.prepare(kFindStatement, kFind);  // planning it takes longer than one answer
    return std::unique_ptr<SharedResults>(new SharedResults(std::move(impl)));
  });
}

Result<bool> SharedResults::HasOthers() {
  return Guarded("looking for other coordinators", [&]() -> Result<bool> {
    pqxx::read_transaction work(impl_->connection);
    const auto rows = work.exec_params("SELECT id, incarnation = $1::uuid FROM coordinators",
                                       impl_->incarnation.ToString());
    bool has_others = false;
    for (const auto& row : rows) {
      if (row[1].as<bool>()) {
        impl_->coordinator = row[0].as<int>();
      } else {
        has_others = true;
      }
    }
    return has_others;
  });
}

Result<std::vector<StoredAnswer>> SharedResults::Find(std::span<const ResultKey> keys) {
  return Guarded("looking for results", [&]() -> Result<std::vector<StoredAnswer>> {
    std::map<Demand, std::vector<std::size_t>> by_demand;
    for (std::size_t i = 0; i < keys.size(); ++i) by_demand[DemandOf(keys[i])].push_back(i);
    std::vector<StoredAnswer> answers(keys.size());
    pqxx::read_transaction work(impl_->connection);
    for (const auto& [demand, which] : by_demand) impl_->Find(work, keys, which, answers);
    return answers;
  });
}

void SharedResults::Impl::Find(pqxx::transaction_base& work, std::span<const ResultKey> keys,
                               const std::vector<std::size_t>& which,
                               std::vector<StoredAnswer>& answers) const {
  std::vector<std::string> trees;
  for (const std::size_t i : which) trees.push_back(PostgresBytes(keys[i].subject.bytes));
  const ResultKey& key = keys[which.front()];
  const auto rows = work.exec_prepared(
      kFindStatement, PostgresList(trees), coordinator, PostgresText(key.hardware_class),
      PostgresText(key.compiler.llvm), PostgresText(LoweringText(key.compiler)), key.threads,
      std::string(EnumName(key.cache)), PostgresText(key.policy),
      std::string(EnumName(key.min_grade)), PostgresTime(key.measured_since), key.precision);
  for (const auto& row : rows) {
    const std::size_t asked = which.at(row[0].as<std::size_t>() - 1);
    auto found = ReadSoundRow(row, keys[asked]);
    if (found) answers[asked] = std::make_shared<const StoredResult>(*std::move(found));
  }
}

}  // namespace loopfleet::storage
