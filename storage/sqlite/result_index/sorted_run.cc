#include "storage/sqlite/result_index/sorted_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/sqlite/damage.h"

namespace loopfleet::storage {
namespace {

constexpr std::int64_t kChunksPerPart = 65'536;  // ids; far more than a part has

std::int64_t ChunkId(PartNumber number, std::size_t chunk) {
  return number * kChunksPerPart + static_cast<std::int64_t>(chunk);
}

template <class T>
std::span<const std::uint8_t> BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};
}

template <class T>
std::vector<T> ValuesOf(std::span<const std::uint8_t> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Of sorted first hashes: the last place that begins below `hash`, since equal hashes may span
// several; the first one if all begin above it.
std::size_t PlaceOf(std::span<const ResultHash> firsts, ResultHash hash) {
  const auto found = std::ranges::lower_bound(firsts, hash);
  return found == firsts.begin() ? 0 : static_cast<std::size_t>(found - firsts.begin()) - 1;
}

Status FindInPart(Connection& connection, const RunPart& part, ResultHash hash, std::size_t max,
                  std::vector<ResultId>& ids) {
  for (std::size_t chunk = PlaceOf(part.directory, hash);
       chunk < part.directory.size() && part.directory[chunk] <= hash; ++chunk) {
    LF_TRY(const auto entries, part.ReadChunk(connection, chunk));
    for (auto entry = std::ranges::lower_bound(entries, hash, {}, &IndexEntry::hash);
         entry != entries.end() && entry->hash == hash; ++entry) {
      if (ids.size() >= max) return {};
      ids.push_back(entry->id);
    }
  }
  return {};
}

}  // namespace

// ---- RunPart

Result<std::shared_ptr<const RunPart>> RunPart::Load(Connection& connection, PartNumber number) {
  LF_TRY(Query row, connection.Start("SELECT * FROM result_key_runs WHERE run = ?"));
  row.Add(number);
  LF_TRY(const bool found, row.Next());
  if (!found) return Damaged("result_key_runs", number);
  auto part = std::make_shared<RunPart>();
  part->number = row.Int64();
  part->first_id = row.Int64();
  part->last_id = row.Int64();
  part->filter = ValuesOf<std::uint64_t>(row.Blob());
  part->directory = ValuesOf<ResultHash>(row.Blob());
  if (!row.ChecksumMatches()) return Damaged("result_key_runs", number);
  return part;
}

Result<std::vector<IndexEntry>> RunPart::ReadChunk(Connection& connection,
                                                   std::size_t chunk) const {
  const std::int64_t id = ChunkId(number, chunk);
  LF_TRY(Query row, connection.Start("SELECT * FROM result_key_chunks WHERE id = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return Damaged("result_key_chunks", id);
  row.Skip();  // id
  auto entries = ValuesOf<IndexEntry>(row.Blob());
  if (!row.ChecksumMatches() || entries.empty()) return Damaged("result_key_chunks", id);
  return entries;
}

Status WriteChunk(Connection& connection, RunPart& part, std::span<const IndexEntry> entries) {
  LF_TRY(Query insert, connection.Start("REPLACE INTO result_key_chunks VALUES (?,?,?)"));
  LF_TRY_VOID(insert.Add(ChunkId(part.number, part.directory.size()))
                  .Add(BytesOf(entries))
                  .AddChecksum()
                  .Run());
  part.directory.push_back(entries.front().hash);
  return {};
}

Status WritePart(Connection& connection, const RunPart& part) {
  LF_TRY(Query insert, connection.Start("INSERT INTO result_key_runs VALUES (?,?,?,?,?,?)"));
  return insert.Add(part.number)
      .Add(part.first_id)
      .Add(part.last_id)
      .Add(BytesOf(std::span(part.filter)))
      .Add(BytesOf(std::span(part.directory)))
      .AddChecksum()
      .Run();
}

Result<std::size_t> RemovePart(Connection& connection, PartNumber number, std::size_t most) {
  {
    LF_TRY(Query query,
           connection.Start("DELETE FROM result_key_chunks WHERE id IN (SELECT id FROM "
                            "result_key_chunks WHERE id >= ? AND id < ? ORDER BY id LIMIT ?)"));
    LF_TRY_VOID(query.Add(ChunkId(number, 0)).Add(ChunkId(number + 1, 0)).Add(most).Run());
  }
  LF_TRY(const std::int64_t removed, connection.Number("SELECT changes()"));
  if (static_cast<std::size_t>(removed) < most) {
    LF_TRY(Query query, connection.Start("DELETE FROM result_key_runs WHERE run = ?"));
    LF_TRY_VOID(query.Add(number).Run());
  }
  return static_cast<std::size_t>(removed);
}

// ---- SortedRun

SortedRun::SortedRun(Parts parts) : parts_(std::move(parts)) {
  for (const auto& part : parts_) bounds_.push_back(part->directory.front());
}

std::size_t SortedRun::PartOf(ResultHash hash) const { return PlaceOf(bounds_, hash); }

std::size_t SortedRun::Prefetch(ResultHash hash) const {
  const std::size_t part = PartOf(hash);
  storage::Prefetch(parts_[part]->filter, parts_[part]->FilterHash(hash));
  return part;
}

Status SortedRun::Find(Connection& connection, std::size_t part, ResultHash hash, std::size_t max,
                       std::vector<ResultId>& ids) const {
  for (; part < parts_.size() && bounds_[part] <= hash && ids.size() < max; ++part) {
    const RunPart& asked = *parts_[part];
    if (!MayContain(asked.filter, asked.FilterHash(hash))) continue;
    LF_TRY_VOID(FindInPart(connection, asked, hash, max, ids));
  }
  return {};
}

// ---- RunCursor

Status RunCursor::Begin(Connection& connection) {
  part_ = chunk_ = at_ = 0;
  return Read(connection);
}

Status RunCursor::BeginAfter(Connection& connection, const IndexEntry& last) {
  part_ = run_->PartOf(last.hash);
  chunk_ = PlaceOf(run_->parts()[part_]->directory, last.hash);
  at_ = 0;
  LF_TRY_VOID(Read(connection));
  while (!is_at_end() && !IsBefore(last, entry())) LF_TRY_VOID(Advance(connection));
  return {};
}

Status RunCursor::Advance(Connection& connection) {
  if (++at_ < entries_.size()) return {};
  at_ = 0;
  if (++chunk_ == run_->parts()[part_]->directory.size()) {
    chunk_ = 0;
    if (++part_ == run_->parts().size()) return {};
  }
  return Read(connection);
}

Status RunCursor::Read(Connection& connection) {
  LF_TRY(entries_, run_->parts()[part_]->ReadChunk(connection, chunk_));
  return {};
}

}  // namespace loopfleet::storage
