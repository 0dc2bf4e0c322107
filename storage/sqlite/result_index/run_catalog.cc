#include "storage/sqlite/result_index/run_catalog.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "storage/sqlite/damage.h"

namespace loopfleet::storage {
namespace {

using PartsByNumber = std::map<PartNumber, std::shared_ptr<const RunPart>>;

PartsByNumber PartsOf(const SortedRuns& runs) {
  PartsByNumber parts;
  for (const auto& run : runs) {
    for (const auto& part : run->parts()) parts.emplace(part->number, part);
  }
  return parts;
}

Result<std::vector<PartNumber>> Retired(Connection& connection) {
  std::vector<PartNumber> retired;
  LF_TRY(Query row, connection.Start("SELECT * FROM retired_runs"));
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) return retired;
    retired.push_back(row.Int64());
    if (!row.ChecksumMatches()) return Damaged("retired_runs", retired.back());
  }
}

// From the first part of each merged run to its last one.
Result<std::map<PartNumber, PartNumber>> Merged(Connection& connection) {
  std::map<PartNumber, PartNumber> merged;
  LF_TRY(Query row, connection.Start("SELECT * FROM merged_runs"));
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) return merged;
    const PartNumber first = row.Int64();
    merged.emplace(first, row.Int64());
    if (!row.ChecksumMatches()) return Damaged("merged_runs", first);
  }
}

// Numbers and first ids of all parts that are not retired. A number may have been used before,
// for other results.
Result<std::map<PartNumber, ResultId>> Listed(Connection& connection,
                                              const std::vector<PartNumber>& retired) {
  const std::set<PartNumber> gone(retired.begin(), retired.end());
  std::map<PartNumber, ResultId> listed;
  LF_TRY(Query row, connection.Start("SELECT run, first_id FROM result_key_runs"));
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) return listed;
    const PartNumber number = row.Int64();
    if (!gone.contains(number)) listed.emplace(number, row.Int64());
  }
}

// Older runs are of higher levels, and have lower numbers in their level.
bool IsOlder(PartNumber a, PartNumber b) {
  return LevelOf(a) != LevelOf(b) ? LevelOf(a) > LevelOf(b) : a < b;
}

}  // namespace

Result<std::array<PartNumber, kRunLevels>> RunCatalog::NewestParts(Connection& connection) {
  std::array<PartNumber, kRunLevels> newest;
  for (std::size_t level = 0; level < kRunLevels; ++level) {
    LF_TRY(Query row, connection.Start("SELECT max(run) FROM result_key_runs WHERE run < ?"));
    row.Add(FirstOfLevel(level + 1));
    LF_TRY_VOID(row.Next());
    newest[level] = std::max(row.OptionalInt64().value_or(0), FirstOfLevel(level));
  }
  return newest;
}

Status RunCatalog::Load(Connection& connection, const SortedRuns& known, RunCatalog& loaded) {
  loaded = {};
  LF_TRY(loaded.newest, NewestParts(connection));
  LF_TRY(loaded.retired, Retired(connection));
  LF_TRY(const auto merged, Merged(connection));
  LF_TRY(auto listed, Listed(connection, loaded.retired));

  Status done;
  PartNumber damaged = 0;  // the oldest run that is; only if !done
  const PartsByNumber before = PartsOf(known);
  const auto load_run = [&](PartNumber first, PartNumber last) -> Status {
    SortedRun::Parts parts;
    for (PartNumber number = first; number <= last; ++number) {
      const auto listing = listed.extract(number);
      const auto found = before.find(number);
      if (found != before.end() && listing && found->second->first_id == listing.mapped()) {
        parts.push_back(found->second);
        continue;
      }
      auto part = RunPart::Load(connection, number);
      if (part) {
        parts.push_back(*std::move(part));
      } else if (part.error().kind != ErrorKind::kCorrupt) {
        return std::unexpected(std::move(part).error());
      } else if (done || IsOlder(first, damaged)) {
        damaged = first;
        done = std::unexpected(std::move(part).error());
      }
    }
    if (std::ssize(parts) == last - first + 1) {
      loaded.runs.push_back(std::make_shared<const SortedRun>(std::move(parts)));
    }
    return {};
  };
  for (const auto& [first, last] : merged) LF_TRY_VOID(load_run(first, last));
  while (!listed.empty() && LevelOf(listed.begin()->first) == 0) {
    const PartNumber run = listed.begin()->first;
    LF_TRY_VOID(load_run(run, run));
  }
  for (const auto& [number, first_id] : listed) loaded.begun.push_back(number);
  std::ranges::sort(loaded.runs, [](const auto& a, const auto& b) {
    return IsOlder(a->parts().front()->number, b->parts().front()->number);
  });
  if (done) return {};
  std::erase_if(loaded.runs,
                [&](const auto& run) { return !IsOlder(run->parts().front()->number, damaged); });
  loaded.begun.clear();
  loaded.retired.clear();
  return done;
}

}  // namespace loopfleet::storage
