#include "storage/sqlite/result_index/result_keys.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace loopfleet::storage {
namespace {

// Of a run, which has 1,049: each transaction writes so many, unless two runs wait.
constexpr std::size_t kChunksPerStep = 64;

// A look-up fetches what it needs of so many filters into the cache at once.
constexpr std::size_t kPrefetched = 32;

}  // namespace

// ---- Recent

void ResultKeys::Recent::Add(const Entry& entry) {
  entries_.push_back(entry);
  if (entries_.size() > newest_.size()) return Rebuild();
  std::uint32_t& head = newest_[entry.hash & (newest_.size() - 1)];
  before_.push_back(std::exchange(head, static_cast<std::uint32_t>(entries_.size())));
}

void ResultKeys::Recent::Rebuild() {
  std::size_t chains = 1024;
  while (chains < entries_.size()) chains *= 2;
  newest_.assign(chains, 0);
  before_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::uint32_t& head = newest_[entries_[i].hash & (chains - 1)];
    before_.push_back(std::exchange(head, static_cast<std::uint32_t>(i + 1)));
  }
}

void ResultKeys::Recent::Find(ResultHash hash, std::size_t max, std::vector<ResultId>& ids) const {
  if (newest_.empty()) return;
  for (std::uint32_t next = newest_[hash & (newest_.size() - 1)]; next != 0 && ids.size() < max;
       next = before_[next - 1]) {
    const Entry& entry = entries_[next - 1];
    if (entry.hash == hash) ids.push_back(entry.id);
  }
}

void ResultKeys::Recent::DropThrough(ResultId last) {
  const auto end = std::ranges::upper_bound(entries_, last, {}, &Entry::id);
  entries_.erase(entries_.begin(), end);
  Rebuild();
}

// ---- reading

Result<std::vector<ResultId>> ResultKeys::Find(Connection& connection, ResultHash hash,
                                               std::size_t max) const {
  std::vector<ResultId> ids;
  std::shared_ptr<const SortedRuns> runs;
  {
    const std::lock_guard lock(mutex_);
    recent_.Find(hash, max, ids);
    runs = runs_;
  }
  LF_TRY_VOID(FindInRuns(connection, *runs, hash, max, ids));
  return ids;
}

Status ResultKeys::FindInRuns(Connection& connection, const SortedRuns& runs, ResultHash hash,
                              std::size_t max, std::vector<ResultId>& ids) {
  std::array<std::size_t, kPrefetched> parts;
  for (std::size_t end = runs.size(); end > 0 && ids.size() < max;) {
    const std::size_t begin = end - std::min(end, kPrefetched);
    for (std::size_t i = begin; i < end; ++i) parts[i - begin] = runs[i]->Prefetch(hash);
    for (; end > begin && ids.size() < max; --end) {
      LF_TRY_VOID(runs[end - 1]->Find(connection, parts[end - 1 - begin], hash, max, ids));
    }
  }
  return {};
}

std::uint32_t ResultKeys::Generation(ResultHash hash) const {
  const std::lock_guard lock(mutex_);
  return generations_[hash % generations_.size()];
}

void ResultKeys::Invalidate() {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t& generation : generations_) ++generation;
}

void ResultKeys::AddRecent(const Entry& entry) {
  recent_.Add(entry);
  ++generations_[entry.hash % generations_.size()];
}

Status ResultKeys::Refresh(Connection& connection, ConditionsTable& conditions) {
  LF_TRY_VOID(LoadRuns(connection));
  return LoadRows(connection, conditions);
}

Status ResultKeys::LoadRuns(Connection& connection) {
  LF_TRY(const auto newest, RunCatalog::NewestParts(connection));
  if (newest == catalog_.newest) return {};
  Status done = RunCatalog::Load(connection, *runs_, catalog_);
  newest_run_ = catalog_.newest.front();
  SetRuns(std::exchange(catalog_.runs, {}));
  if (!done) catalog_.newest = {};  // the next call tries again
  return done;
}

void ResultKeys::SetRuns(SortedRuns runs) {
  const ResultId last = runs.empty() ? 0 : runs.back()->last_id();
  auto next = std::make_shared<const SortedRuns>(std::move(runs));
  const std::lock_guard lock(mutex_);
  runs_ = std::move(next);
  recent_.DropThrough(last);
  last_id_ = std::max(last_id_, last);
}

Status ResultKeys::LoadRows(Connection& connection, ConditionsTable& conditions) {
  const std::lock_guard lock(mutex_);
  // The code only of a result that answers for it: see ResultTable::Insert.
  LF_TRY(Query row,
         connection.Start("SELECT id, tree_key, conditions, CASE WHEN grade IN ('A','B') AND NOT "
                          "EXISTS (SELECT 1 FROM copied_results c WHERE c.result = r.id) "
                          "THEN code_hash ELSE '' END FROM results r WHERE id > ? ORDER BY id"));
  row.Add(last_id_);
  std::unordered_map<ConditionsId, std::optional<ResultHash>> hashes;
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) return {};
    const ResultId id = row.Int64();
    const auto tree = row.Blob();
    const ConditionsId under = row.Int64();
    auto known = hashes.find(under);
    if (known == hashes.end()) {
      const auto found = conditions.Find(under);
      if (!found && found.error().kind != ErrorKind::kCorrupt) {
        return std::unexpected(found.error());
      }
      // A result with damaged conditions can answer nothing.
      known = hashes.emplace(under, found ? std::optional(HashOf(*found)) : std::nullopt).first;
    }
    if (known->second) {
      AddRecent({HashOf(tree, *known->second), id});
      if (const std::string_view code = row.Text(); !code.empty()) {
        AddRecent({HashOfCode(code, *known->second), id});
      }
    }
    last_id_ = id;
  }
}

// ---- writing

Status ResultKeys::DropUnknownRuns(Connection& connection) {
  std::set<PartNumber> known;
  for (const auto& run : *runs_) {
    for (const auto& part : run->parts()) known.insert(part->number);
  }
  std::vector<PartNumber> stored;
  {
    LF_TRY(Query row, connection.Start("SELECT run FROM result_key_runs"));
    while (true) {
      LF_TRY(const bool more, row.Next());
      if (!more) break;
      stored.push_back(row.Int64());
    }
  }
  // With the one that may have been begun at the end of each level.
  LF_TRY(const auto newest, RunCatalog::NewestParts(connection));
  for (const PartNumber number : newest) stored.push_back(number + 1);
  for (const PartNumber number : stored) {
    if (known.contains(number)) continue;
    LF_TRY_VOID(RemovePart(connection, number, std::numeric_limits<std::uint32_t>::max()));
    LF_TRY(Query forget,
           connection.Start("DELETE FROM merged_runs WHERE ? BETWEEN first_part AND last_part"));
    LF_TRY_VOID(forget.Add(number).Run());
  }
  // Nothing is known if a row of merged_runs is damaged: its range then names nothing.
  if (known.empty()) LF_TRY_VOID(connection.Run("DELETE FROM merged_runs"));
  return connection.Run("DELETE FROM retired_runs");
}

bool ResultKeys::HasEntriesToSeal() const {
  const std::lock_guard lock(mutex_);
  return recent_.entries().size() >= run_entries_;
}

Status ResultKeys::WriteRuns(Connection& connection) {
  LF_TRY_VOID(Seal(connection));
  return compaction_.Step(connection, *runs_);
}

Status ResultKeys::Seal(Connection& connection) {
  bool is_behind = false;
  {
    const std::lock_guard lock(mutex_);
    is_behind = recent_.entries().size() >= 2 * run_entries_;
  }
  for (std::size_t chunks = 0; is_behind || chunks < kChunksPerStep; ++chunks) {
    if (!sealing_ && !BeginRun()) break;
    const auto rest = sealing_->rest();
    const std::size_t size = std::min(rest.size(), RunPart::kChunkEntries);
    LF_TRY_VOID(WriteChunk(connection, *sealing_->part, rest.first(size)));
    if (rest.size() == size) LF_TRY_VOID(EndRun(connection));
  }
  return {};
}

bool ResultKeys::BeginRun() {
  const SortedRuns& runs = sealed_.empty() ? *runs_ : sealed_;
  std::vector<Entry> entries;
  {
    const std::lock_guard lock(mutex_);  // only this thread changes them
    const std::vector<Entry>& recent = recent_.entries();
    const auto first =
        std::ranges::upper_bound(recent, runs.empty() ? 0 : runs.back()->last_id(), {}, &Entry::id);
    const auto size = static_cast<std::ptrdiff_t>(run_entries_);
    if (recent.end() - first < size) return false;
    auto last = first + size;
    if (last != recent.end() && last->id == std::prev(last)->id) ++last;
    entries.assign(first, last);
  }
  auto part = std::make_shared<RunPart>();
  part->number = newest_run_ + 1 + std::ssize(sealed_);
  part->first_id = entries.front().id;
  part->last_id = entries.back().id;
  part->filter = NewFilter(run_entries_);
  std::ranges::sort(entries, IsBefore);
  for (const Entry& entry : entries) AddTo(part->filter, part->FilterHash(entry.hash));
  sealing_ = Sealing{.part = std::move(part), .entries = std::move(entries)};
  return true;
}

Status ResultKeys::EndRun(Connection& connection) {
  LF_TRY_VOID(WritePart(connection, *sealing_->part));
  sealed_.push_back(std::make_shared<const SortedRun>(SortedRun::Parts{sealing_->part}));
  sealing_.reset();
  return {};
}

void ResultKeys::Publish(std::span<const Entry> added) {
  if (!added.empty()) {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : added) AddRecent(entry);
    last_id_ = added.back().id;
  }
  if (sealing_) sealing_->durable = sealing_->part->directory.size();
  compaction_.CountAdded(added.size());
  SortedRuns runs = *runs_;
  const bool is_merged = compaction_.Commit(runs);
  if (sealed_.empty() && !is_merged) return;
  newest_run_ += std::ssize(sealed_);
  std::ranges::move(sealed_, std::back_inserter(runs));
  sealed_.clear();
  SetRuns(std::move(runs));
}

void ResultKeys::Forget() {
  compaction_.Rollback();
  // A run that was whole is begun again, and what was begun after it.
  if (!sealed_.empty()) sealing_.reset();
  sealed_.clear();
  if (sealing_) sealing_->part->directory.resize(sealing_->durable);
}

}  // namespace loopfleet::storage
