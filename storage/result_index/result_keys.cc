#include "storage/result_index/result_keys.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/check.h"
#include "storage/sqlite/damage.h"

namespace loopfleet::storage {
namespace {

constexpr std::int64_t kChunksPerRun = 65'536;  // ids; far more than a run has
constexpr std::size_t kChunkEntries = 250;      // 4,000 bytes: a row that fills a page of 4,096
constexpr std::size_t kBlockWords = 8;          // a block of a filter is one cache line
constexpr std::size_t kKeysPerBlock = 32;       // 16 bits each: about 1 false positive in 1,000

std::uint64_t BlockOf(ResultHash hash, std::size_t words) {
  return ((hash >> 32) * (words / kBlockWords)) >> 32;
}

// One bit in each word of the block, six bits of the mixed hash for each.
template <class Visit>
bool ForEachBit(ResultHash hash, std::size_t words, const Visit& visit) {
  const std::size_t block = BlockOf(hash, words) * kBlockWords;
  const std::uint64_t mixed = (hash | 1) * 0x9e3779b97f4a7c15ULL;
  for (std::size_t i = 0; i < kBlockWords; ++i) {
    if (!visit(block + i, std::uint64_t{1} << (mixed >> (6 * i + 10) & 63))) return false;
  }
  return true;
}

std::vector<std::uint64_t> NewFilter(std::size_t keys) {
  return std::vector<std::uint64_t>((keys / kKeysPerBlock + 1) * kBlockWords);
}

bool MayContain(const std::vector<std::uint64_t>& filter, ResultHash hash) {
  return ForEachBit(hash, filter.size(),
                    [&](std::size_t word, std::uint64_t bit) { return (filter[word] & bit) != 0; });
}

template <class T>
std::span<const std::uint8_t> BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> ValuesOf(std::span<const std::uint8_t> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

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
  std::vector<std::shared_ptr<const Run>> runs;
  {
    const std::lock_guard lock(mutex_);
    recent_.Find(hash, max, ids);
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
      if (MayContain((*run)->filter, hash)) runs.push_back(*run);
    }
  }
  for (const auto& run : runs) {
    if (ids.size() >= max) break;
    LF_TRY_VOID(FindInRun(connection, *run, hash, max, ids));
  }
  return ids;
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

Result<bool> ResultKeys::FindInRun(Connection& connection, const Run& run, ResultHash hash,
                                   std::size_t max, std::vector<ResultId>& ids) {
  // Equal hashes may span several chunks: begin in the last one that starts below `hash`.
  const auto first = std::ranges::lower_bound(run.directory, hash);
  std::int64_t chunk = std::max<std::int64_t>(first - run.directory.begin() - 1, 0);
  for (; chunk < std::ssize(run.directory); ++chunk) {
    if (run.directory[static_cast<std::size_t>(chunk)] > hash) break;
    const std::int64_t id = run.run * kChunksPerRun + chunk;
    LF_TRY(Query row, connection.Start("SELECT * FROM result_key_chunks WHERE id = ?"));
    row.Add(id);
    LF_TRY(const bool found, row.Next());
    if (!found) return Damaged("result_key_chunks", id);
    row.Skip();  // id
    const auto entries = ValuesOf<Entry>(row.Blob());
    if (!row.ChecksumMatches()) return Damaged("result_key_chunks", id);
    for (auto entry = std::ranges::lower_bound(entries, hash, {}, &Entry::hash);
         entry != entries.end() && entry->hash == hash; ++entry) {
      if (ids.size() >= max) return true;
      ids.push_back(entry->id);
    }
  }
  return true;
}

Status ResultKeys::Refresh(Connection& connection, ConditionsTable& conditions) {
  LF_TRY_VOID(LoadRuns(connection));
  return LoadRows(connection, conditions);
}

Status ResultKeys::LoadRuns(Connection& connection) {
  const std::lock_guard lock(mutex_);
  LF_TRY(Query row, connection.Start("SELECT * FROM result_key_runs WHERE run > ? ORDER BY run"));
  row.Add(runs_.empty() ? 0 : runs_.back()->run);
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) return {};
    auto run = std::make_shared<Run>();
    run->run = row.Int64();
    run->first_id = row.Int64();
    run->last_id = row.Int64();
    run->filter = ValuesOf<std::uint64_t>(row.Blob());
    run->directory = ValuesOf<ResultHash>(row.Blob());
    if (!row.ChecksumMatches()) return Damaged("result_key_runs", run->run);
    recent_.DropThrough(run->last_id);
    last_id_ = std::max(last_id_, run->last_id);
    runs_.push_back(std::move(run));
  }
}

Status ResultKeys::LoadRows(Connection& connection, ConditionsTable& conditions) {
  const std::lock_guard lock(mutex_);
  LF_TRY(Query row,
         connection.Start("SELECT id, tree_key, conditions FROM results WHERE id > ? ORDER BY id"));
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
    if (known->second) AddRecent({HashOf(tree, *known->second), id});
    last_id_ = id;
  }
}

// ---- writing

Status ResultKeys::DropUnknownRuns(Connection& connection) {
  std::int64_t known = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!runs_.empty()) known = runs_.back()->run;
  }
  for (const auto& [sql, above] :
       {std::pair{"DELETE FROM result_key_runs WHERE run > ?", known},
        std::pair{"DELETE FROM result_key_chunks WHERE id >= ?", (known + 1) * kChunksPerRun}}) {
    LF_TRY(Query query, connection.Start(sql));
    LF_TRY_VOID(query.Add(above).Run());
  }
  return {};
}

Status ResultKeys::Seal(Connection& connection) {
  std::vector<Entry> entries;
  {
    const std::lock_guard lock(mutex_);  // only this thread changes it
    if (recent_.entries().size() < run_entries_) return {};
    entries = recent_.entries();
  }
  const auto size = static_cast<std::ptrdiff_t>(run_entries_);
  for (auto next = entries.begin(); entries.end() - next >= size; next += size) {
    LF_TRY_VOID(WriteRun(connection, std::vector<Entry>(next, next + size)));
  }
  return {};
}

Status ResultKeys::WriteRun(Connection& connection, std::vector<Entry> entries) {
  auto run = std::make_shared<Run>();
  LF_TRY(run->run, connection.Number("SELECT coalesce(max(run), 0) + 1 FROM result_key_runs"));
  run->first_id = entries.front().id;
  run->last_id = entries.back().id;
  run->filter = NewFilter(entries.size());
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.id > b.id;
  });
  for (const Entry& entry : entries) {
    ForEachBit(entry.hash, run->filter.size(), [&](std::size_t word, std::uint64_t bit) {
      run->filter[word] |= bit;
      return true;
    });
  }
  for (std::size_t from = 0; from < entries.size(); from += kChunkEntries) {
    const auto chunk =
        std::span(entries).subspan(from, std::min(kChunkEntries, entries.size() - from));
    LF_TRY(Query insert, connection.Start("INSERT INTO result_key_chunks VALUES (?,?,?)"));
    LF_TRY_VOID(
        insert.Add(run->run * kChunksPerRun + std::ssize(run->directory))
            .Add(std::span(reinterpret_cast<const std::uint8_t*>(chunk.data()), chunk.size_bytes()))
            .AddChecksum()
            .Run());
    run->directory.push_back(chunk.front().hash);
  }
  LF_TRY(Query insert, connection.Start("INSERT INTO result_key_runs VALUES (?,?,?,?,?,?)"));
  LF_TRY_VOID(insert.Add(run->run)
                  .Add(run->first_id)
                  .Add(run->last_id)
                  .Add(BytesOf(run->filter))
                  .Add(BytesOf(run->directory))
                  .AddChecksum()
                  .Run());
  sealed_.push_back(std::move(run));
  return {};
}

void ResultKeys::Publish(std::span<const Entry> added) {
  if (added.empty() && sealed_.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : added) AddRecent(entry);
  if (!added.empty()) last_id_ = added.back().id;
  for (auto& run : sealed_) runs_.push_back(std::move(run));
  if (!sealed_.empty()) recent_.DropThrough(runs_.back()->last_id);
  sealed_.clear();
}

void ResultKeys::Forget() { sealed_.clear(); }

}  // namespace loopfleet::storage
