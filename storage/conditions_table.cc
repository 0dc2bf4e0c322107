#include "storage/conditions_table.h"

#include <functional>
#include <string>

#include "storage/damage.h"

namespace loopfleet::storage {
namespace {

// A bound on each memory; beyond it, it starts anew.
constexpr std::size_t kMaxRemembered = 4096;

template <class Map>
void Remember(Map& map, typename Map::key_type key, typename Map::mapped_type value) {
  if (map.size() >= kMaxRemembered) map.clear();
  map.emplace(std::move(key), std::move(value));
}

void AddFacts(Query& query, const HardwareFacts& facts) {
  query.Add(DeviceKindName(facts.device))
      .Add(facts.hardware_class)
      .Add(facts.model)
      .Add(facts.isa)
      .Add(facts.microcode)
      .Add(facts.clock_mhz)
      .Add(facts.physical_cores)
      .Add(facts.logical_cores)
      .Add(facts.l1d_bytes)
      .Add(facts.l2_bytes)
      .Add(facts.l3_bytes)
      .Add(facts.memory_bytes)
      .Add(facts.host)
      .Add(facts.kernel);
}

void AddFacts(Query& query, const CompilerFacts& facts) {
  query.Add(facts.llvm).Add(facts.tier).Add(facts.revision);
}

// Runs a query for an id.
Result<std::optional<std::int64_t>> FindId(Query& query) {
  LF_TRY(const bool found, query.Next());
  if (!found) return std::nullopt;
  return query.Int64();
}

// The id that a new row of the table gets: a part of the row, so that the checksum covers it.
template <class Facts>
Result<std::int64_t> InsertFacts(Connection& connection, const char* next_id, const char* insert,
                                 const Facts& facts) {
  LF_TRY(const std::int64_t id, connection.Number(next_id));
  LF_TRY(Query query, connection.Start(insert));
  query.Add(id);
  AddFacts(query, facts);
  LF_TRY_VOID(query.AddChecksum().Run());
  return id;
}

}  // namespace

std::size_t ConditionsTable::Hash::operator()(const Conditions& conditions) const {
  const std::hash<std::string> hash;  // hosts tell them apart; clashes are only slow
  return hash(conditions.hardware.host) * 31 + hash(conditions.policy);
}

Result<std::int64_t> ConditionsTable::InternHardware(const HardwareFacts& facts) {
  LF_TRY(Query query, connection_.Start(R"sql(
    SELECT id FROM hardware
    WHERE device = ? AND class = ? AND model = ? AND isa = ? AND microcode = ? AND clock_mhz = ?
      AND physical_cores = ? AND logical_cores = ? AND l1d_bytes = ? AND l2_bytes = ?
      AND l3_bytes = ? AND memory_bytes = ? AND host = ? AND kernel = ?)sql"));
  AddFacts(query, facts);
  LF_TRY(const auto known, FindId(query));
  if (known) return *known;
  return InsertFacts(connection_, "SELECT coalesce(max(id), 0) + 1 FROM hardware",
                     "INSERT INTO hardware VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", facts);
}

Result<std::int64_t> ConditionsTable::InternCompiler(const CompilerFacts& facts) {
  LF_TRY(Query query, connection_.Start(
                          "SELECT id FROM compilers WHERE llvm = ? AND tier = ? AND revision = ?"));
  AddFacts(query, facts);
  LF_TRY(const auto known, FindId(query));
  if (known) return *known;
  return InsertFacts(connection_, "SELECT coalesce(max(id), 0) + 1 FROM compilers",
                     "INSERT INTO compilers VALUES (?,?,?,?,?)", facts);
}

Result<ConditionsId> ConditionsTable::Intern(const Conditions& conditions) {
  if (latest_ != nullptr && latest_->first == conditions) return latest_->second;
  if (const auto known = ids_.find(conditions); known != ids_.end()) {
    latest_ = &*known;
    return known->second;
  }
  latest_ = nullptr;
  LF_TRY(const std::int64_t hardware, InternHardware(conditions.hardware));
  LF_TRY(const std::int64_t compiler, InternCompiler(conditions.compiler));
  const auto add = [&](Query& query) {
    query.Add(hardware)
        .Add(compiler)
        .Add(conditions.threads)
        .Add(CacheStateName(conditions.cache))
        .Add(conditions.policy)
        .Add(conditions.isolation);
  };
  LF_TRY(Query find, connection_.Start(R"sql(
    SELECT id FROM conditions WHERE hardware = ? AND compiler = ? AND threads = ? AND cache = ?
                                AND policy = ? AND isolation = ?)sql"));
  add(find);
  LF_TRY(auto id, FindId(find));
  if (!id) {
    LF_TRY(id, connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM conditions"));
    LF_TRY(Query insert, connection_.Start("INSERT INTO conditions VALUES (?,?,?,?,?,?,?,?)"));
    insert.Add(*id);
    add(insert);
    LF_TRY_VOID(insert.AddChecksum().Run());
  }
  Remember(ids_, conditions, *id);
  return *id;
}

Result<HardwareFacts> ConditionsTable::FindHardware(std::int64_t id) {
  LF_TRY(Query row, connection_.Start("SELECT * FROM hardware WHERE id = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return Damaged("hardware", id);
  row.Skip();  // id
  HardwareFacts facts;
  facts.device =
      row.Text() == DeviceKindName(DeviceKind::kCpu) ? DeviceKind::kCpu : DeviceKind::kCuda;
  facts.hardware_class = row.Text();
  facts.model = row.Text();
  facts.isa = row.Text();
  facts.microcode = row.Text();
  facts.clock_mhz = row.Double();
  facts.physical_cores = row.Int<std::uint32_t>();
  facts.logical_cores = row.Int<std::uint32_t>();
  facts.l1d_bytes = row.Int<std::uint64_t>();
  facts.l2_bytes = row.Int<std::uint64_t>();
  facts.l3_bytes = row.Int<std::uint64_t>();
  facts.memory_bytes = row.Int<std::uint64_t>();
  facts.host = row.Text();
  facts.kernel = row.Text();
  if (!row.ChecksumMatches()) return Damaged("hardware", id);
  return facts;
}

Result<CompilerFacts> ConditionsTable::FindCompiler(std::int64_t id) {
  LF_TRY(Query row, connection_.Start("SELECT * FROM compilers WHERE id = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return Damaged("compilers", id);
  row.Skip();  // id
  CompilerFacts facts;
  facts.llvm = row.Text();
  facts.tier = row.Text();
  facts.revision = row.Text();
  if (!row.ChecksumMatches()) return Damaged("compilers", id);
  return facts;
}

Result<Conditions> ConditionsTable::Find(ConditionsId id) {
  if (const auto known = conditions_.find(id); known != conditions_.end()) return known->second;
  LF_TRY(Query row, connection_.Start("SELECT * FROM conditions WHERE id = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return Damaged("conditions", id);
  row.Skip();  // id
  const std::int64_t hardware = row.Int64();
  const std::int64_t compiler = row.Int64();
  Conditions conditions;
  conditions.threads = row.Int<std::uint32_t>();
  conditions.cache =
      row.Text() == CacheStateName(CacheState::kWarm) ? CacheState::kWarm : CacheState::kCold;
  conditions.policy = row.Text();
  conditions.isolation = row.Text();
  if (!row.ChecksumMatches()) return Damaged("conditions", id);
  LF_TRY(conditions.hardware, FindHardware(hardware));
  LF_TRY(conditions.compiler, FindCompiler(compiler));
  Remember(conditions_, id, conditions);
  return conditions;
}

}  // namespace loopfleet::storage
