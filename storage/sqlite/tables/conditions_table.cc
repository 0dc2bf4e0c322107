#include "storage/sqlite/tables/conditions_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <string>
#include <type_traits>

#include "storage/sqlite/damage.h"

namespace loopfleet::storage {
namespace {

// The peaks are columns of version 2, after the first checksum.
enum class Columns : std::uint8_t { kVersion1, kVersion2 };
bool IsAmong(Columns columns, const HardwareFact& fact) {
  return fact.is_rate == (columns == Columns::kVersion2);
}

void AddFacts(Query& query, const HardwareFacts& facts, Columns columns) {
  ForEachFact(
      [&]<class T>(const HardwareFact& fact, const T& value) {
        if (!IsAmong(columns, fact)) return;
        if constexpr (std::is_enum_v<T>) {
          query.Add(EnumName(value));
        } else {
          query.Add(value);
        }
      },
      facts);
}

void ReadFacts(Query& row, HardwareFacts& facts, Columns columns) {
  ForEachFact(
      [&]<class T>(const HardwareFact& fact, T& place) {
        if (!IsAmong(columns, fact)) return;
        if constexpr (std::is_same_v<T, DeviceKind>) {
          place = row.Text() == EnumName(DeviceKind::kCpu) ? DeviceKind::kCpu : DeviceKind::kCuda;
        } else if constexpr (std::is_same_v<T, std::string>) {
          place = row.Text();
        } else if constexpr (std::is_same_v<T, double>) {
          place = row.Double();
        } else {
          place = row.Int<T>();
        }
      },
      facts);
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

}  // namespace

std::size_t ConditionsHash::operator()(const Conditions& conditions) const {
  const HardwareFacts& hardware = conditions.hardware;
  std::size_t sum = 0;
  const auto add = [&sum](const auto& value) {
    sum = sum * 0x9e3779b97f4a7c15ULL + std::hash<std::decay_t<decltype(value)>>{}(value);
    sum ^= sum >> 32;
  };
  add(hardware.host);
  add(hardware.hardware_class);
  add(hardware.kernel);
  add(hardware.clock_mhz);
  add(hardware.peaks.flop_per_second);  // measured at each start of a worker
  add(hardware.peaks.read_bytes_per_second);
  add(hardware.peaks.triad_bytes_per_second);
  add(conditions.compiler.revision);
  add(conditions.threads);
  add(conditions.policy);
  add(conditions.isolation);
  return sum;
}

Result<std::int64_t> ConditionsTable::InternHardware(const HardwareFacts& facts) {
  static const std::string kFind = [&] {
    std::vector<std::string> wanted;
    ForEachFact([&](const HardwareFact& fact,
                    const auto&) { wanted.push_back(fmt::format("{} = ?", fact.name)); },
                facts);
    return fmt::format("SELECT id FROM hardware WHERE {}", fmt::join(wanted, " AND "));
  }();
  LF_TRY(Query query, connection_.Start(kFind.c_str()));
  AddFacts(query, facts, Columns::kVersion1);
  AddFacts(query, facts, Columns::kVersion2);
  LF_TRY(const auto known, FindId(query));
  if (known) return *known;
  LF_TRY(const std::int64_t id,
         connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM hardware"));
  LF_TRY(
      Query insert,
      connection_.Start("INSERT INTO hardware VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?, ?,?,?,?)"));
  insert.Add(id);
  AddFacts(insert, facts, Columns::kVersion1);
  insert.AddChecksum();
  AddFacts(insert, facts, Columns::kVersion2);
  LF_TRY_VOID(insert.AddChecksum().Run());
  return id;
}

Result<std::int64_t> ConditionsTable::InternCompiler(const CompilerFacts& facts) {
  LF_TRY(Query query, connection_.Start(
                          "SELECT id FROM compilers WHERE llvm = ? AND tier = ? AND revision = ?"));
  AddFacts(query, facts);
  LF_TRY(const auto known, FindId(query));
  if (known) return *known;
  LF_TRY(const std::int64_t id,
         connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM compilers"));
  LF_TRY(Query insert, connection_.Start("INSERT INTO compilers VALUES (?,?,?,?,?)"));
  insert.Add(id);
  AddFacts(insert, facts);
  LF_TRY_VOID(insert.AddChecksum().Run());
  return id;
}

Result<ConditionsId> ConditionsTable::Intern(const Conditions& conditions) {
  if (latest_ != nullptr && latest_->first == conditions) return latest_->second;
  latest_ = ids_.Find(conditions);
  if (latest_ != nullptr) return latest_->second;
  LF_TRY(const std::int64_t hardware, InternHardware(conditions.hardware));
  LF_TRY(const std::int64_t compiler, InternCompiler(conditions.compiler));
  const auto add = [&](Query& query) {
    query.Add(hardware)
        .Add(compiler)
        .Add(conditions.threads)
        .Add(EnumName(conditions.cache))
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
  ids_.Add(conditions, *id);
  return *id;
}

Result<HardwareFacts> ConditionsTable::FindHardware(std::int64_t id) {
  LF_TRY(Query row, connection_.Start("SELECT * FROM hardware WHERE id = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return Damaged("hardware", id);
  row.Skip();  // id
  HardwareFacts facts;
  ReadFacts(row, facts, Columns::kVersion1);
  if (!row.ChecksumMatches()) return Damaged("hardware", id);
  ReadFacts(row, facts, Columns::kVersion2);
  const bool is_version_1 = row.IsNull() && facts.peaks == DevicePeaks{};
  if (!is_version_1 && !row.ChecksumMatches()) return Damaged("hardware", id);
  return facts;
}

Result<std::vector<ReferenceClock>> ConditionsTable::ReferenceClocks() {
  std::vector<std::int64_t> ids;
  {
    // Rows of version 1 have the clock that the host stated, which is no reference clock.
    LF_TRY(Query query, connection_.Start("SELECT min(id) FROM hardware "
                                          "WHERE checksum_2 IS NOT NULL GROUP BY class"));
    for (;;) {
      LF_TRY(const bool found, query.Next());
      if (!found) break;
      ids.push_back(query.Int64());
    }
  }
  std::vector<ReferenceClock> clocks;
  for (const std::int64_t id : ids) {
    const auto facts = FindHardware(id);
    if (!facts && facts.error().kind != ErrorKind::kCorrupt) return std::unexpected(facts.error());
    if (facts && facts->clock_mhz > 0) {
      clocks.push_back({.hardware_class = facts->hardware_class, .mhz = facts->clock_mhz});
    }
  }
  return clocks;
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
  if (const auto* known = conditions_.Find(id)) return known->second;
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
      row.Text() == EnumName(CacheState::kWarm) ? CacheState::kWarm : CacheState::kCold;
  conditions.policy = row.Text();
  conditions.isolation = row.Text();
  if (!row.ChecksumMatches()) return Damaged("conditions", id);
  LF_TRY(conditions.hardware, FindHardware(hardware));
  LF_TRY(conditions.compiler, FindCompiler(compiler));
  conditions_.Add(id, conditions);
  return conditions;
}

}  // namespace loopfleet::storage
