#include "storage/sqlite/result_index/known_failures.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "storage/sqlite/result_index/result_hash.h"

namespace loopfleet::storage {

void KnownFailures::Remember(const Entry& entry) {
  entries_.emplace(entry.hash, entry);
  oldest_.push_back(entry.hash);
  if (oldest_.size() <= kMost) return;
  const auto [begin, end] = entries_.equal_range(oldest_.front());
  oldest_.pop_front();
  const auto older = [](const auto& a, const auto& b) {
    return std::pair(a.second.batch, a.second.sequence) <
           std::pair(b.second.batch, b.second.sequence);
  };
  if (begin != end) entries_.erase(std::min_element(begin, end, older));
}

Status KnownFailures::Load(Connection& connection, ConditionsTable& conditions) {
  std::vector<Entry> newest;
  std::vector<std::pair<ConditionsId, SubjectKey>> keys;
  {
    LF_TRY(Query row, connection.Start("SELECT * FROM known_failures ORDER BY id DESC LIMIT ?"));
    row.Add(kMost);
    while (true) {
      LF_TRY(const bool more, row.Next());
      if (!more) break;
      row.Skip();  // id
      const auto key = row.Blob();
      SubjectKey tree;
      if (key.size() != sizeof tree.bytes) continue;
      std::memcpy(tree.bytes.data(), key.data(), key.size());
      const ConditionsId id = row.Int64();
      const auto code = FailureCodeOf(row.Int<std::uint16_t>());
      Entry entry{.cut_above_ns = row.Int<std::uint64_t>()};
      entry.batch.value = row.Int<std::uint64_t>();
      entry.sequence = row.Int<std::uint64_t>();
      entry.failed_at = WallTime(Nanos(row.Int64()));
      entry.witness.worker = row.Text();
      entry.witness.host = row.Text();
      if (!row.ChecksumMatches() || !code) continue;
      entry.code = *code;
      newest.push_back(entry);
      keys.emplace_back(id, tree);
    }
  }
  std::lock_guard lock(mutex_);
  entries_.clear();
  oldest_.clear();
  for (std::size_t i = newest.size(); i-- > 0;) {
    const auto under = conditions.Find(keys[i].first);
    if (!under && under.error().kind == ErrorKind::kCorrupt) continue;
    if (!under) return std::unexpected(under.error());
    newest[i].hash = HashOf(keys[i].second, *under);
    Remember(newest[i]);
  }
  return {};
}

std::vector<KnownFailures::Entry> KnownFailures::Find(std::uint64_t hash) const {
  std::vector<Entry> found;
  {
    std::lock_guard lock(mutex_);
    const auto [begin, end] = entries_.equal_range(hash);
    for (auto entry = begin; entry != end; ++entry) found.push_back(entry->second);
  }
  std::ranges::sort(found, [](const Entry& a, const Entry& b) {
    return std::pair(b.batch, b.sequence) < std::pair(a.batch, a.sequence);
  });
  return found;
}

Status KnownFailures::Add(Connection& connection, ConditionsId conditions, const SubjectKey& tree,
                          const Entry& entry) {
  LF_TRY(const std::int64_t id,
         connection.Number("SELECT coalesce(max(id), 0) + 1 FROM known_failures"));
  LF_TRY(Query query,
         connection.Start("INSERT INTO known_failures VALUES (?,?,?,?,?,?,?,?,?,?,?)"));
  LF_TRY_VOID(query.Add(id)
                  .Add(std::span<const std::uint8_t>(tree.bytes))
                  .Add(conditions)
                  .Add(static_cast<int>(entry.code))
                  .Add(entry.cut_above_ns)
                  .Add(entry.batch.value)
                  .Add(entry.sequence)
                  .Add(entry.failed_at.time_since_epoch().count())
                  .Add(entry.witness.worker)
                  .Add(entry.witness.host)
                  .AddChecksum()
                  .Run());
  added_.push_back(entry);
  return {};
}

Result<IdRange> KnownFailures::RangeSince(Connection& connection, WallTime since) {
  LF_TRY(const std::int64_t last,
         connection.Number("SELECT coalesce(max(id), 0) FROM known_failures"));
  return storage::RangeSince(since, last, [&](std::int64_t id) -> Result<std::optional<WallTime>> {
    LF_TRY(Query row, connection.Start("SELECT * FROM known_failures WHERE id >= ? "
                                       "ORDER BY id LIMIT 1"));
    row.Add(id);
    LF_TRY(const bool found, row.Next());
    if (!found) return std::nullopt;
    for (int column = 0; column < 7; ++column) row.Skip();  // id .. sequence
    const WallTime failed_at(Nanos(row.Int64()));
    row.Skip();  // worker
    row.Skip();  // host
    return row.ChecksumMatches() ? std::optional(failed_at) : std::nullopt;
  });
}

Result<std::uint64_t> KnownFailures::RunRemoval(Query query) {
  std::uint64_t count = 0;
  while (true) {
    LF_TRY(const bool more, query.Next());
    if (!more) return count;
    const BatchId batch{query.Int<std::uint64_t>()};
    const auto sequence = query.Int<std::uint64_t>();
    removed_.emplace(batch, sequence, query.Text());
    ++count;
  }
}

Status KnownFailures::Suspect(Connection& connection, const ResultsSuspected& suspected,
                              IdRange range) {
  LF_TRY(Query query, connection.Start(R"sql(
    DELETE FROM known_failures WHERE id BETWEEN ? AND ? AND failed_at >= ? AND worker = ?
    RETURNING batch, sequence, worker)sql"));
  query.Add(range.first)
      .Add(range.last)
      .Add(suspected.since.time_since_epoch().count())
      .Add(suspected.worker);
  LF_TRY_VOID(RunRemoval(std::move(query)));
  return {};
}

Status KnownFailures::Doubt(Connection& connection, BatchId batch, std::uint64_t sequence) {
  LF_TRY(Query query, connection.Start("DELETE FROM known_failures WHERE batch = ? AND "
                                       "sequence = ? RETURNING batch, sequence, worker"));
  query.Add(batch.value).Add(sequence);
  LF_TRY_VOID(RunRemoval(std::move(query)));
  return {};
}

Result<std::uint32_t> KnownFailures::RemoveFrom(Connection& connection, BatchId batch,
                                                std::uint64_t first_sequence) {
  LF_TRY(Query query, connection.Start("DELETE FROM known_failures WHERE batch = ? AND "
                                       "sequence >= ? RETURNING batch, sequence, worker"));
  query.Add(batch.value).Add(first_sequence);
  LF_TRY(const std::uint64_t count, RunRemoval(std::move(query)));
  return static_cast<std::uint32_t>(count);
}

Result<std::uint64_t> KnownFailures::Remove(Connection& connection, const FailureFilter& filter) {
  LF_TRY(Query query, connection.Start(R"sql(
    DELETE FROM known_failures
    WHERE ? IN ('', worker, host) AND code = coalesce(?, code) AND failed_at < ?
    RETURNING batch, sequence, worker)sql"));
  const auto code = filter.code ? std::optional(static_cast<int>(*filter.code)) : std::nullopt;
  query.Add(std::string_view(filter.of))
      .Add(code)
      .Add(filter.failed_before.time_since_epoch().count());
  return RunRemoval(std::move(query));
}

void KnownFailures::Publish() {
  if (added_.empty() && removed_.empty()) return;
  std::lock_guard lock(mutex_);
  for (const Entry& entry : std::exchange(added_, {})) Remember(entry);
  const auto taken_away = std::exchange(removed_, {});
  if (taken_away.empty()) return;
  std::unordered_multiset<std::uint64_t> gone;
  std::erase_if(entries_, [&](const auto& one) {
    const bool goes = taken_away.contains(RowOf(one.second));
    if (goes) gone.insert(one.first);
    return goes;
  });
  std::erase_if(oldest_, [&](std::uint64_t hash) {
    const auto one = gone.find(hash);
    if (one == gone.end()) return false;
    gone.erase(one);
    return true;
  });
}

void KnownFailures::Forget() {
  added_.clear();
  removed_.clear();
}

}  // namespace loopfleet::storage
