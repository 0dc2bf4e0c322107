#include "storage/sqlite/result_index/result_keys.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
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

// Of a run, which has 1,049: each transaction writes so many, unless two runs wait.
constexpr std::size_t kChunksPerStep = 64;

// Of a group's filters, which have 99,872: each transaction adds so many, in some 1.4 ms.
constexpr std::size_t kWordsPerStep = 4096;

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

const ResultKeys::Run* ResultKeys::Runs::newest() const {
  if (!rest.empty()) return rest.back().get();
  return groups.empty() ? nullptr : groups.back()->runs.back().get();
}

Result<std::vector<ResultId>> ResultKeys::Find(Connection& connection, ResultHash hash,
                                               std::size_t max) const {
  std::vector<ResultId> ids;
  std::shared_ptr<const Runs> runs;
  {
    const std::lock_guard lock(mutex_);
    recent_.Find(hash, max, ids);
    runs = runs_;
  }
  LF_TRY_VOID(FindInRuns(connection, runs->rest, hash, max, ids));
  for (auto group = runs->groups.rbegin(); group != runs->groups.rend(); ++group) {
    LF_TRY_VOID(FindInGroup(connection, **group, hash, max, ids));
  }
  return ids;
}

Status ResultKeys::FindInRuns(Connection& connection,
                              std::span<const std::shared_ptr<const Run>> runs, ResultHash hash,
                              std::size_t max, std::vector<ResultId>& ids) {
  for (auto run = runs.rbegin(); run != runs.rend() && ids.size() < max; ++run) {
    if (!MayContain((*run)->filter, hash)) continue;
    LF_TRY_VOID(FindInRun(connection, **run, hash, max, ids));
  }
  return {};
}

Status ResultKeys::FindInGroup(Connection& connection, const Group& group, ResultHash hash,
                               std::size_t max, std::vector<ResultId>& ids) {
  if (ids.size() >= max) return {};
  if (!group.filters) return FindInRuns(connection, group.runs, hash, max, ids);
  std::uint32_t which = group.filters->MayContain(hash);
  while (which != 0 && ids.size() < max) {
    const auto newest = static_cast<std::size_t>(std::bit_width(which)) - 1;
    which &= ~(std::uint32_t{1} << newest);
    LF_TRY_VOID(FindInRun(connection, *group.runs[newest], hash, max, ids));
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

Status ResultKeys::FindInRun(Connection& connection, const Run& run, ResultHash hash,
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
      if (ids.size() >= max) return {};
      ids.push_back(entry->id);
    }
  }
  return {};
}

Status ResultKeys::Refresh(Connection& connection, ConditionsTable& conditions) {
  LF_TRY_VOID(LoadRuns(connection));
  return LoadRows(connection, conditions);
}

Status ResultKeys::LoadRuns(Connection& connection) {
  std::vector<std::shared_ptr<const Run>> loaded;
  const auto load = [&]() -> Status {
    LF_TRY(Query row, connection.Start("SELECT * FROM result_key_runs WHERE run > ? ORDER BY run"));
    row.Add(runs_->newest() == nullptr ? 0 : runs_->newest()->run);
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
      loaded.push_back(std::move(run));
    }
  };
  Status done = load();
  AddRuns(std::move(loaded));  // those before a damaged one
  return done;
}

void ResultKeys::AddRuns(std::vector<std::shared_ptr<const Run>> added) {
  if (added.empty()) return;
  const ResultId last = added.back()->last_id;
  auto next = std::make_shared<Runs>(*runs_);
  std::ranges::move(added, std::back_inserter(next->rest));
  const std::lock_guard lock(mutex_);
  runs_ = std::move(next);
  recent_.DropThrough(last);
  last_id_ = std::max(last_id_, last);
}

bool ResultKeys::GrowGroup(std::size_t words) {
  const auto& rest = runs_->rest;
  if (rest.size() < FilterGroup::kFilters) return false;
  const auto members = std::span(rest).first<FilterGroup::kFilters>();
  const std::size_t size = members.front()->filter.size();
  // Of another size in a database of an earlier version.
  const auto odd =
      std::ranges::find_if(members, [&](const auto& run) { return run->filter.size() != size; });
  if (odd != members.end()) {
    AddGroup({.runs = {members.begin(), odd}, .filters = std::nullopt});
    return true;
  }
  std::array<const RunFilter*, FilterGroup::kFilters> filters;
  std::ranges::transform(members, filters.begin(), [](const auto& run) { return &run->filter; });
  if (!growing_) growing_.emplace(size);
  growing_->Grow(filters, words);
  if (!growing_->is_whole()) return true;
  Group group{.runs = {}, .filters = std::exchange(growing_, std::nullopt)};
  for (const auto& run : members) {
    group.runs.push_back(std::make_shared<const Run>(Run{.run = run->run,
                                                         .first_id = run->first_id,
                                                         .last_id = run->last_id,
                                                         .filter = {},
                                                         .directory = run->directory}));
  }
  AddGroup(std::move(group));
  return true;
}

void ResultKeys::AddGroup(Group group) {
  auto next = std::make_shared<Runs>();
  next->rest.assign(runs_->rest.begin() + std::ssize(group.runs), runs_->rest.end());
  next->groups = runs_->groups;
  next->groups.push_back(std::make_shared<const Group>(std::move(group)));
  const std::lock_guard lock(mutex_);
  runs_ = std::move(next);
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
  const std::int64_t known = runs_->newest() == nullptr ? 0 : runs_->newest()->run;
  for (const auto& [sql, above] :
       {std::pair{"DELETE FROM result_key_runs WHERE run > ?", known},
        std::pair{"DELETE FROM result_key_chunks WHERE id >= ?", (known + 1) * kChunksPerRun}}) {
    LF_TRY(Query query, connection.Start(sql));
    LF_TRY_VOID(query.Add(above).Run());
  }
  return {};
}

bool ResultKeys::HasEntriesToSeal() const {
  const std::lock_guard lock(mutex_);
  return recent_.entries().size() >= run_entries_;
}

Status ResultKeys::Seal(Connection& connection) {
  bool is_behind = false;
  {
    const std::lock_guard lock(mutex_);
    is_behind = recent_.entries().size() >= 2 * run_entries_;
  }
  for (std::size_t chunks = 0; is_behind || chunks < kChunksPerStep; ++chunks) {
    if (!sealing_ && !BeginRun()) break;
    LF_TRY_VOID(WriteChunk(connection));
    if (sealing_->written == sealing_->run->directory.size()) {
      LF_TRY_VOID(EndRun(connection));
    }
  }
  return {};
}

bool ResultKeys::BeginRun() {
  const Run* newest = sealed_.empty() ? runs_->newest() : sealed_.back().get();
  std::vector<Entry> entries;
  {
    const std::lock_guard lock(mutex_);  // only this thread changes them
    const std::vector<Entry>& recent = recent_.entries();
    const auto first =
        std::ranges::upper_bound(recent, newest == nullptr ? 0 : newest->last_id, {}, &Entry::id);
    const auto size = static_cast<std::ptrdiff_t>(run_entries_);
    if (recent.end() - first < size) return false;
    auto last = first + size;
    if (last != recent.end() && last->id == std::prev(last)->id) ++last;
    entries.assign(first, last);
  }
  auto run = std::make_shared<Run>();
  run->run = newest == nullptr ? 1 : newest->run + 1;
  run->first_id = entries.front().id;
  run->last_id = entries.back().id;
  run->filter = NewFilter(run_entries_);  // all of one size, for a FilterGroup
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.id > b.id;
  });
  for (const Entry& entry : entries) AddTo(run->filter, entry.hash);
  for (std::size_t from = 0; from < entries.size(); from += kChunkEntries) {
    run->directory.push_back(entries[from].hash);
  }
  sealing_ = Sealing{.run = std::move(run), .entries = std::move(entries)};
  return true;
}

// Replaces the chunk of a program that ended before its run was whole.
Status ResultKeys::WriteChunk(Connection& connection) {
  const std::size_t from = sealing_->written * kChunkEntries;
  const auto chunk = std::span(sealing_->entries)
                         .subspan(from, std::min(kChunkEntries, sealing_->entries.size() - from));
  LF_TRY(Query insert, connection.Start("REPLACE INTO result_key_chunks VALUES (?,?,?)"));
  LF_TRY_VOID(
      insert.Add(sealing_->run->run * kChunksPerRun + static_cast<std::int64_t>(sealing_->written))
          .Add(std::span(reinterpret_cast<const std::uint8_t*>(chunk.data()), chunk.size_bytes()))
          .AddChecksum()
          .Run());
  ++sealing_->written;
  return {};
}

Status ResultKeys::EndRun(Connection& connection) {
  const Run& run = *sealing_->run;
  LF_TRY(Query insert, connection.Start("INSERT INTO result_key_runs VALUES (?,?,?,?,?,?)"));
  LF_TRY_VOID(insert.Add(run.run)
                  .Add(run.first_id)
                  .Add(run.last_id)
                  .Add(BytesOf(run.filter))
                  .Add(BytesOf(run.directory))
                  .AddChecksum()
                  .Run());
  sealed_.push_back(std::move(sealing_->run));
  sealing_.reset();
  return {};
}

void ResultKeys::Publish(std::span<const Entry> added) {
  if (!added.empty()) {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : added) AddRecent(entry);
    last_id_ = added.back().id;
  }
  if (sealing_) sealing_->durable = sealing_->written;
  AddRuns(std::exchange(sealed_, {}));
  GrowGroup(kWordsPerStep);
}

void ResultKeys::Forget() {
  // A run that was whole is begun again, and what was begun after it.
  if (!sealed_.empty()) sealing_.reset();
  sealed_.clear();
  if (sealing_) sealing_->written = sealing_->durable;
}

}  // namespace loopfleet::storage
