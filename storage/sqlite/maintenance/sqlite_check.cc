// SQLite's own integrity check finds a broken page but misses a changed value (499 of 541 single
// bit flips).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/database_check.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {
namespace {

struct Column {
  std::string name;
  bool is_key = false;
  bool is_checksum() const { return name.starts_with("checksum"); }
};

struct Table {
  std::string name;
  std::vector<Column> columns;
  // What `loopfleet db repair` replaced: nothing reads it, so its damage is no damage of the file.
  bool is_kept() const { return name.starts_with("outcomes_damaged_"); }
};

class Checker {
 public:
  explicit Checker(Connection& connection) : connection_(connection) {}

  Result<DatabaseCheck> Run() {
    LF_TRY(check_.schema_version, connection_.Number("PRAGMA user_version"));
    auto tables = ListTables();
    // The pages of a kept table cannot be told from others, so then each other table is checked.
    bool sound_pages = false;
    if (!tables || std::ranges::none_of(*tables, &Table::is_kept)) {
      LF_TRY(sound_pages, CheckPages("", "PRAGMA quick_check(100)"));
    }
    if (!tables) return Unreadable("sqlite_schema", "", tables.error());
    for (const Table& table : *tables) {
      LF_TRY_VOID(CheckRows(table));
      // Finds out whether the damaged pages are those of this table or its indices.
      if (sound_pages || table.is_kept()) continue;
      const std::string sql = fmt::format("PRAGMA quick_check(\"{}\")", table.name);
      LF_TRY_VOID(CheckPages(table.name, sql));
    }
    LF_TRY_VOID(CheckCounts());
    return std::move(check_);
  }

 private:
  void Found(std::string table, std::string row, std::string what) {
    ++check_.damage_count;
    if (check_.damage.size() < kMaxDamageListed) {
      check_.damage.push_back({std::move(table), std::move(row), std::move(what)});
    }
  }

  // Counts what cannot be read as damage; returns any other error.
  Result<DatabaseCheck> Unreadable(std::string table, std::string row, const Error& error) {
    if (error.kind != ErrorKind::kCorrupt) return std::unexpected(error);
    Found(std::move(table), std::move(row), error.message);
    return std::move(check_);
  }

  // Whether the pages are sound. Damage is reported for `table`; "": table unknown.
  Result<bool> CheckPages(const std::string& table, const std::string& sql) {
    bool sound = true;
    LF_TRY(Query query, connection_.StartOnce(sql));
    while (true) {
      const auto more = query.Next();
      if (!more && more.error().kind != ErrorKind::kCorrupt) return std::unexpected(more.error());
      if (more && !*more) return sound;
      // quick_check also verifies CHECK constraints; the rows are reported below, by their
      // checksums.
      const std::string said(more ? query.Text() : more.error().message);
      if (said == "ok") continue;
      sound = false;
      Found(table, "", said);
      if (!more) return sound;
    }
  }

  Result<std::vector<Table>> ListTables() {
    std::vector<Table> tables;
    LF_TRY(Query query, connection_.Start(R"sql(
      SELECT t.name, c.name, c.pk FROM pragma_table_list t JOIN pragma_table_info(t.name) c
      WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite%'
      ORDER BY t.name, c.cid)sql"));
    while (true) {
      LF_TRY(const bool more, query.Next());
      if (!more) break;
      const std::string name(query.Text());
      if (tables.empty() || tables.back().name != name) tables.push_back({.name = name});
      std::string column(query.Text());
      tables.back().columns.push_back({.name = std::move(column), .is_key = query.Int64() != 0});
    }
    std::erase_if(tables, [](const Table& table) {  // removes writer, failure_codes
      return std::ranges::none_of(table.columns, &Column::is_checksum);
    });
    return tables;
  }

  // The second checksum of a row of an earlier version is NULL.
  static bool ChecksumsMatch(Query& row, const Table& table, std::string& key) {
    bool matches = true;
    bool first = true;
    for (const Column& column : table.columns) {
      if (column.is_checksum()) {
        if (std::exchange(first, false) || !row.IsNull()) {
          matches &= row.ChecksumMatches();
        } else {
          row.Skip();
        }
      } else if (column.is_key) {
        if (!key.empty()) key += '.';
        key += row.KeyText();
      } else {
        row.Skip();
      }
    }
    return matches;
  }

  Status CheckRows(const Table& table) {
    CheckedTable& checked = check_.tables.emplace_back(CheckedTable{.name = table.name});
    const std::string sql = "SELECT * FROM \"" + table.name + "\"";
    LF_TRY(Query row, connection_.StartOnce(sql));
    while (true) {
      const auto more = row.Next();
      if (!more && more.error().kind != ErrorKind::kCorrupt) return std::unexpected(more.error());
      if (!more) {
        ++checked.damaged;
        if (!table.is_kept()) {
          Found(table.name, "", "the rest cannot be read: " + more.error().message);
        }
      }
      if (!more || !*more) return {};
      ++checked.rows;
      std::string key;
      if (ChecksumsMatch(row, table, key)) continue;
      ++checked.damaged;
      if (!table.is_kept()) Found(table.name, key, "not what was written");
    }
  }

  // The batch that a pruning has not removed to the end; 0: none.
  Result<std::int64_t> HalfRemoved() {
    LF_TRY(const std::int64_t tables,
           connection_.Number("SELECT count(*) FROM sqlite_schema WHERE name = 'prunings'"));
    if (tables == 0) return 0;
    return connection_.Number(
        "SELECT coalesce((SELECT removing FROM prunings ORDER BY id DESC LIMIT 1), 0)");
  }

  // Finds missing rows, and rows that were never written.
  Status CheckCounts() {
    struct Rule {
      const char* table;
      const char* what;
      const char* sql;  // selects the batches (or other keys of the table) that break the rule
      std::int64_t since = 1;  // first schema version that it applies to
      bool spares_half_removed = false;
    };
    constexpr Rule kRules[] = {
        {"jobs", "job count does not match the batch",
         "SELECT id FROM batches WHERE job_count <> "
         "(SELECT count(*) FROM jobs WHERE batch = id)"},
        {"outcomes", "a batch has another number of outcomes than it says",
         "SELECT id FROM batches WHERE finished <> "
         "(SELECT count(*) FROM outcomes WHERE batch = id)"},
        {"outcomes", "sequences of a batch have a gap",
         "SELECT batch FROM outcomes GROUP BY batch HAVING max(sequence) <> count(*)"},
        {"outcomes", "an outcome of a batch has no result",
         "SELECT batch FROM outcomes "
         "WHERE result > 0 AND result NOT IN (SELECT id FROM results)"},
        {"outcomes", "an outcome of a batch has no observed values",
         "SELECT batch FROM outcomes "
         "WHERE result < 0 AND -result NOT IN (SELECT id FROM observations)",
         14},
        {"suspect_observations", "an observation in doubt is not there",
         "SELECT observation FROM suspect_observations "
         "WHERE observation NOT IN (SELECT id FROM observations)",
         21},
        {"results", "ids have a gap",
         "SELECT 0 FROM (SELECT count(*) AS n, max(id) AS m FROM results) WHERE n <> m"},
        {"requests", "batch has no request",
         "SELECT id FROM batches WHERE id NOT IN (SELECT batch FROM requests)"},
        {"batches", "jobs of a batch that is not there",
         "SELECT DISTINCT batch FROM jobs WHERE batch NOT IN (SELECT id FROM batches)", 1, true},
        // Not `<>`: a later pass may have thinned some of them again.
        {"retention", "more results say that this took samples away than it says",
         "SELECT thinned_by FROM results WHERE thinned_by IS NOT NULL GROUP BY thinned_by "
         "HAVING count(*) > coalesce((SELECT results FROM retention WHERE id = thinned_by), 0)",
         6},
    };
    LF_TRY(const std::int64_t half_removed, HalfRemoved());
    for (const Rule& rule : kRules) {
      if (check_.schema_version < rule.since) continue;
      LF_TRY(Query query, connection_.Start(rule.sql));
      while (true) {
        const auto more = query.Next();
        if (!more && more.error().kind != ErrorKind::kCorrupt) {
          return std::unexpected(more.error());
        }
        if (!more) Found(rule.table, "", more.error().message);
        if (!more || !*more) break;
        const std::string key = query.KeyText();
        if (rule.spares_half_removed && key == std::to_string(half_removed)) continue;
        Found(rule.table, key, rule.what);
      }
    }
    return {};
  }

  Connection& connection_;
  DatabaseCheck check_;
};

}  // namespace

Result<DatabaseCheck> CheckDatabase(const std::filesystem::path& path) {
  LF_TRY(auto connection, Connection::Open(path, Access::kReadOnly, kBusyWait));
  LF_TRY_VOID(CheckOrigin(*connection));
  // One consistent state, whatever is written meanwhile.
  LF_TRY_VOID(connection->Run("BEGIN"));
  return Checker(*connection).Run();
}

}  // namespace loopfleet::storage
