#include "storage/result_index/known_failures.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "storage/result_index/result_hash.h"

namespace loopfleet::storage {

bool IsCacheable(FailureCode code) {
  switch (code) {
    case FailureCode::kCompileError:
    case FailureCode::kCompileTimeout:
    case FailureCode::kCompileOom:
    case FailureCode::kRunTimeout:
    case FailureCode::kRunCrash:
    case FailureCode::kRunOom:
    case FailureCode::kSandboxViolation:
    case FailureCode::kWrongOutput:
    case FailureCode::kCut:
    case FailureCode::kWorkerLost:
    case FailureCode::kWorkerCrashed: return true;
    default: return false;
  }
}

bool IsCircumstantial(FailureCode code) {
  switch (code) {
    case FailureCode::kCompileTimeout:
    case FailureCode::kCompileOom:
    case FailureCode::kRunTimeout:
    case FailureCode::kRunOom:
    case FailureCode::kWorkerLost:
    case FailureCode::kWorkerCrashed: return true;
    default: return false;
  }
}

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
  std::vector<std::pair<ConditionsId, looptree::TreeKey>> keys;
  {
    LF_TRY(Query row, connection.Start("SELECT * FROM known_failures ORDER BY id DESC LIMIT ?"));
    row.Add(kMost);
    while (true) {
      LF_TRY(const bool more, row.Next());
      if (!more) break;
      row.Skip();  // id
      const auto key = row.Blob();
      looptree::TreeKey tree;
      if (key.size() != sizeof tree.bytes) continue;
      std::memcpy(tree.bytes.data(), key.data(), key.size());
      const ConditionsId id = row.Int64();
      const auto code = FailureCodeOf(row.Int<std::uint16_t>());
      Entry entry{.cut_above_ns = row.Int<std::uint64_t>()};
      entry.batch.value = row.Int<std::uint64_t>();
      entry.sequence = row.Int<std::uint64_t>();
      entry.failed_at = WallTime(Nanos(row.Int64()));
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

Status KnownFailures::Add(Connection& connection, ConditionsId conditions,
                          const looptree::TreeKey& tree, const Entry& entry) {
  LF_TRY(const std::int64_t id,
         connection.Number("SELECT coalesce(max(id), 0) + 1 FROM known_failures"));
  LF_TRY(Query query, connection.Start("INSERT INTO known_failures VALUES (?,?,?,?,?,?,?,?,?)"));
  LF_TRY_VOID(query.Add(id)
                  .Add(std::span<const std::uint8_t>(tree.bytes))
                  .Add(conditions)
                  .Add(static_cast<int>(entry.code))
                  .Add(entry.cut_above_ns)
                  .Add(entry.batch.value)
                  .Add(entry.sequence)
                  .Add(entry.failed_at.time_since_epoch().count())
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
    return row.ChecksumMatches() ? std::optional(failed_at) : std::nullopt;
  });
}

Status KnownFailures::Suspect(Connection& connection, const ResultsSuspected& suspected,
                              IdRange range) {
  const std::int64_t since = suspected.since.time_since_epoch().count();
  std::vector<std::pair<std::int64_t, Place>> rows;
  {
    LF_TRY(Query row, connection.Start(R"sql(
      SELECT f.*, o.worker
      FROM known_failures f LEFT JOIN outcomes o ON o.batch = f.batch AND o.sequence = f.sequence
      WHERE f.id BETWEEN ? AND ?)sql"));
    row.Add(range.first).Add(range.last);
    while (true) {
      LF_TRY(const bool more, row.Next());
      if (!more) break;
      const std::int64_t id = row.Int64();
      row.Skip();  // tree_key
      row.Skip();  // conditions
      const auto code = FailureCodeOf(row.Int<std::uint16_t>());
      row.Skip();  // cut_above_ns
      const BatchId batch{row.Int<std::uint64_t>()};
      const Place place{batch, row.Int<std::uint64_t>()};
      const std::int64_t failed_at = row.Int64();
      if (!row.ChecksumMatches()) continue;  // it answers nothing
      const bool is_of_worker = row.Text() == suspected.worker;
      if (!code || !DependsOnTime(*code) || failed_at < since || !is_of_worker) continue;
      rows.emplace_back(id, place);
    }
  }
  for (const auto& [id, place] : rows) {
    LF_TRY(Query query, connection.Start("DELETE FROM known_failures WHERE id = ?"));
    LF_TRY_VOID(query.Add(id).Run());
    removed_.insert(place);
  }
  return {};
}

Status KnownFailures::Doubt(Connection& connection, BatchId batch, std::uint64_t sequence) {
  LF_TRY(Query query,
         connection.Start("DELETE FROM known_failures WHERE batch = ? AND sequence = ?"));
  LF_TRY_VOID(query.Add(batch.value).Add(sequence).Run());
  removed_.insert({batch, sequence});
  return {};
}

Result<std::uint32_t> KnownFailures::RemoveFrom(Connection& connection, BatchId batch,
                                                std::uint64_t first_sequence) {
  std::uint32_t count = 0;
  {
    LF_TRY(Query row, connection.Start(
                          "SELECT sequence FROM known_failures WHERE batch = ? AND sequence >= ?"));
    row.Add(batch.value).Add(first_sequence);
    while (true) {
      LF_TRY(const bool more, row.Next());
      if (!more) break;
      removed_.insert({batch, row.Int<std::uint64_t>()});
      ++count;
    }
  }
  if (count == 0) return count;
  LF_TRY(Query query,
         connection.Start("DELETE FROM known_failures WHERE batch = ? AND sequence >= ?"));
  LF_TRY_VOID(query.Add(batch.value).Add(first_sequence).Run());
  return count;
}

void KnownFailures::Publish() {
  if (added_.empty() && removed_.empty()) return;
  std::lock_guard lock(mutex_);
  for (const Entry& entry : std::exchange(added_, {})) Remember(entry);
  const auto taken_away = std::exchange(removed_, {});
  if (taken_away.empty()) return;
  std::unordered_multiset<std::uint64_t> gone;
  std::erase_if(entries_, [&](const auto& one) {
    const bool goes = taken_away.contains({one.second.batch, one.second.sequence});
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
