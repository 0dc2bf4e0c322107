#include "storage/sqlite/tables/batch_table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "storage/batch_list.h"
#include "storage/sqlite/damage.h"

namespace loopfleet::storage {
namespace {

std::span<const std::uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Reads all columns of `batches`.
Result<StoredBatch> ReadBatch(Query& row) {
  StoredBatch batch;
  batch.batch.value = row.Int<std::uint64_t>();
  const auto client = row.Blob();
  if (client.size() == batch.client.bytes.size()) {
    std::memcpy(batch.client.bytes.data(), client.data(), client.size());
  }
  batch.accepted_at = WallTime(Nanos(row.Int64()));
  batch.closed = row.Int64() != 0;
  batch.cancelled = row.Int64() != 0;
  batch.job_count = row.Int<std::uint32_t>();
  batch.finished = row.Int<std::uint32_t>();
  batch.failed = row.Int<std::uint32_t>();
  batch.from_store = row.Int<std::uint32_t>();
  if (!row.ChecksumMatches()) return Damaged("batches", batch.batch);
  return batch;
}

// Undamaged rows, at most `max`.
Result<std::vector<StoredBatch>> ReadBatches(Query& query, std::size_t max) {
  std::vector<StoredBatch> batches;
  while (batches.size() < max) {
    LF_TRY(const bool more, query.Next());
    if (!more) break;
    auto batch = ReadBatch(query);
    if (batch) {
      batches.push_back(*batch);
    } else if (batch.error().kind != ErrorKind::kCorrupt) {
      return std::unexpected(std::move(batch).error());
    }
  }
  return batches;
}

}  // namespace

Status BatchTable::Save(const StoredBatch& batch) {
  return rows_.Add(batch.batch.value)
      .Add(std::span<const std::uint8_t>(batch.client.bytes))
      .Add(batch.accepted_at.time_since_epoch().count())
      .Add(batch.closed)
      .Add(batch.cancelled)
      .Add(batch.job_count)
      .Add(batch.finished)
      .Add(batch.failed)
      .Add(batch.from_store)
      .AddChecksum()
      .EndRow();
}

Result<std::optional<StoredBatch>> BatchTable::Find(BatchId batch) {
  LF_TRY(Query query, connection_.Start("SELECT * FROM batches WHERE id = ?"));
  query.Add(batch.value);
  LF_TRY(const bool found, query.Next());
  if (!found) return std::nullopt;
  LF_TRY(StoredBatch stored, ReadBatch(query));
  return stored;
}

Result<std::vector<StoredBatch>> BatchTable::List(std::uint32_t max) {
  LF_TRY(Query query, connection_.Start("SELECT * FROM batches ORDER BY id DESC"));
  LF_TRY(std::vector<StoredBatch> batches, ReadBatches(query, max));
  if (max < 2 || batches.size() < max) return batches;
  LF_TRY(Query older,
         connection_.Start("SELECT * FROM batches WHERE (closed = 0 OR finished < job_count) "
                           "AND id < ? ORDER BY id DESC"));
  older.Add(batches.back().batch.value);
  LF_TRY(std::vector<StoredBatch> unfinished, ReadBatches(older, max / 2));
  return WithOlder(std::move(batches), std::move(unfinished), max);
}

Result<std::vector<StoredBatch>> BatchTable::ListAfter(BatchId batch, std::uint32_t max) {
  LF_TRY(Query query, connection_.Start("SELECT * FROM batches WHERE id > ? ORDER BY id"));
  query.Add(batch.value);
  return ReadBatches(query, max);
}

Result<std::optional<StoredBatch>> BatchTable::NewestOfClients() {
  LF_TRY(Query query,
         connection_.Start("SELECT * FROM batches WHERE client <> zeroblob(16) ORDER BY id DESC"));
  LF_TRY(const auto newest, ReadBatches(query, 1));
  if (newest.empty()) return std::nullopt;
  return newest.front();
}

Result<std::vector<StoredBatch>> BatchTable::ListUnfinished() {
  LF_TRY(Query query,
         connection_.Start(
             "SELECT * FROM batches WHERE closed = 0 OR finished < job_count ORDER BY id"));
  return ReadBatches(query, std::numeric_limits<std::size_t>::max());
}

Result<std::vector<BatchId>> BatchTable::DamagedUnfinished() {
  LF_TRY(Query query,
         connection_.Start(
             "SELECT * FROM batches WHERE closed = 0 OR finished < job_count ORDER BY id"));
  std::vector<BatchId> damaged;
  while (true) {
    LF_TRY(const bool more, query.Next());
    if (!more) return damaged;
    const auto batch = ReadBatch(query);
    if (batch) continue;
    if (batch.error().kind != ErrorKind::kCorrupt) return std::unexpected(batch.error());
    query.Rewind();
    damaged.push_back({query.Int<std::uint64_t>()});
  }
}

Result<StoredBatch> BatchTable::Rebuild(BatchId id) {
  StoredBatch batch{.batch = id, .closed = true};
  bool is_known = false;  // by an undamaged request
  {
    LF_TRY(Query request,
           connection_.Start("SELECT * FROM requests WHERE batch = ? ORDER BY first_index DESC"));
    request.Add(id.value);
    while (true) {
      LF_TRY(const bool more, request.Next());
      if (!more) break;
      Uuid client;
      const auto bytes = request.Blob();
      if (bytes.size() == client.bytes.size()) {
        std::memcpy(client.bytes.data(), bytes.data(), bytes.size());
      }
      request.Skip();  // request_id
      request.Skip();  // digest
      request.Skip();  // batch
      const auto end = request.Int<std::uint32_t>() + request.Int<std::uint32_t>();
      const WallTime accepted_at{Nanos(request.Int64())};
      if (!request.ChecksumMatches()) continue;
      is_known = true;
      batch.client = client;
      batch.accepted_at = accepted_at;  // the last one read is the first request's
      batch.job_count = std::max(batch.job_count, end);
    }
  }
  if (!is_known) return Damaged("batches", id);
  LF_TRY(Query jobs, connection_.Start("SELECT coalesce(max(idx) + 1, 0) FROM jobs "
                                       "WHERE batch = ?"));
  jobs.Add(id.value);
  LF_TRY_VOID(jobs.Next());
  batch.job_count = std::max(batch.job_count, jobs.Int<std::uint32_t>());
  LF_TRY(Query outcomes, connection_.Start(R"sql(
    SELECT coalesce(max(sequence), 0), count(*) FILTER (WHERE result IS NULL),
           count(*) FILTER (WHERE source = 'stored'), count(*) FILTER (WHERE failure_code = ?)
    FROM outcomes WHERE batch = ?)sql"));
  outcomes.Add(static_cast<int>(FailureCode::kCancelled)).Add(id.value);
  LF_TRY_VOID(outcomes.Next());
  batch.finished = outcomes.Int<std::uint32_t>();
  batch.failed = outcomes.Int<std::uint32_t>();
  batch.from_store = outcomes.Int<std::uint32_t>();
  batch.cancelled = outcomes.Int64() > 0;  // no other cause gives a job this outcome
  return batch;
}

Result<std::uint64_t> BatchTable::NextId() {
  LF_TRY(const std::int64_t id, connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM batches"));
  return static_cast<std::uint64_t>(id);
}

Result<std::optional<BatchTable::Next>> BatchTable::After(BatchId batch) {
  LF_TRY(Query query, connection_.Start("SELECT * FROM batches WHERE id > ? ORDER BY id LIMIT 2"));
  query.Add(batch.value);
  LF_TRY(const bool found, query.Next());
  if (!found) return std::nullopt;
  Next next{.id = {query.Int<std::uint64_t>()}};
  query.Rewind();
  auto stored = ReadBatch(query);
  if (stored) {
    next.batch = *stored;
  } else if (stored.error().kind != ErrorKind::kCorrupt) {
    return std::unexpected(std::move(stored).error());
  }
  LF_TRY(const bool is_followed, query.Next());
  next.is_newest = !is_followed;
  return next;
}

// The newest batch is never pruned, and numbers ascend by one, but for the jump after each restore:
// batches whose numbers it skipped are lost.
Result<bool> BatchTable::WasPruned(BatchId batch) {
  LF_TRY(Query query, connection_.Start(R"sql(
    SELECT EXISTS (SELECT 1 FROM prunings) AND ?1 > 0 AND ?1 < (SELECT max(id) FROM batches)
           AND NOT EXISTS (SELECT 1 FROM batches WHERE id = ?1)
           AND NOT EXISTS (SELECT 1 FROM restores WHERE ?1 > last_batch AND ?1 < first_batch))sql"));
  query.Add(std::min<std::uint64_t>(batch.value, std::numeric_limits<std::int64_t>::max()));
  LF_TRY_VOID(query.Next());
  return query.Int64() != 0;
}

Status BatchTable::Remove(BatchId batch) {
  LF_TRY(Query query, connection_.Start("DELETE FROM batches WHERE id = ?"));
  return query.Add(batch.value).Run();
}

Result<std::uint32_t> BatchTable::RemoveRequests(BatchId batch, std::uint32_t most) {
  std::uint32_t count = 0;
  {
    LF_TRY(
        Query query,
        connection_.Start("SELECT count(*) FROM (SELECT 1 FROM requests WHERE batch = ? LIMIT ?)"));
    query.Add(batch.value).Add(most);
    LF_TRY_VOID(query.Next());
    count = query.Int<std::uint32_t>();
  }
  if (count == 0) return 0U;
  LF_TRY(Query query, connection_.Start(R"sql(
    DELETE FROM requests WHERE (client, request_id) IN
      (SELECT client, request_id FROM requests WHERE batch = ? LIMIT ?))sql"));
  LF_TRY_VOID(query.Add(batch.value).Add(most).Run());
  return count;
}

Status BatchTable::InsertRequest(const JobsAccepted& accepted) {
  return requests_.Add(std::span<const std::uint8_t>(accepted.client.bytes))
      .Add(std::span<const std::uint8_t>(accepted.request_id.bytes))
      .Add(BytesOf(accepted.request_digest))
      .Add(accepted.batch.value)
      .Add(accepted.first_index)
      .Add(accepted.jobs.size())
      .Add(accepted.accepted_at.time_since_epoch().count())
      .AddChecksum()
      .EndRow();
}

Result<std::optional<StoredRequest>> BatchTable::FindRequest(const Uuid& client,
                                                             const Uuid& request_id) {
  LF_TRY(Query query,
         connection_.Start("SELECT * FROM requests WHERE client = ? AND request_id = ?"));
  query.Add(std::span<const std::uint8_t>(client.bytes))
      .Add(std::span<const std::uint8_t>(request_id.bytes));
  LF_TRY(const bool found, query.Next());
  if (!found) return std::nullopt;
  query.Skip();  // client
  query.Skip();  // request_id
  StoredRequest request;
  const auto digest = query.Blob();
  request.request_digest.assign(reinterpret_cast<const char*>(digest.data()), digest.size());
  request.batch.value = query.Int<std::uint64_t>();
  request.first_index = query.Int<std::uint32_t>();
  request.job_count = query.Int<std::uint32_t>();
  query.Skip();  // accepted_at
  if (!query.ChecksumMatches()) return Damaged("requests", request_id.ToString());
  return request;
}

}  // namespace loopfleet::storage
