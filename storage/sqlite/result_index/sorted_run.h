#pragma once
// SortedRun: entries of the result index that never change, in the order of their hashes. A run has
// one part, or many if it was merged (storage/sqlite/result_index/run_merge.h). A part is a row of
// `result_key_runs` and its chunks, rows of `result_key_chunks`.
//
// In memory a part has its filter, 3 bytes for each entry, and the first hash of each chunk.
// Immutable: any thread may read.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "storage/sqlite/result_index/result_hash.h"
#include "storage/sqlite/result_index/run_filter.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

using ResultId = std::int64_t;

struct IndexEntry {
  ResultHash hash;
  ResultId id;
};
// The order in a run: by hash, those of one hash from the newest to the oldest.
inline bool IsBefore(const IndexEntry& a, const IndexEntry& b) {
  return a.hash != b.hash ? a.hash < b.hash : a.id > b.id;
}

// result_key_runs.run: the level of its run, and a number of its own.
using PartNumber = std::int64_t;
constexpr PartNumber FirstOfLevel(std::size_t level) {
  return static_cast<PartNumber>(level) << 32;
}
constexpr std::size_t LevelOf(PartNumber number) { return static_cast<std::size_t>(number >> 32); }

struct RunPart {
  static constexpr std::size_t kChunkEntries =
      250;  // 4,000 bytes: a row that fills a page of 4,096

  PartNumber number = 0;
  ResultId first_id = 0;  // of the whole run
  ResultId last_id = 0;
  RunFilter filter;
  std::vector<ResultHash> directory;  // the first hash of each chunk

  // What the filter is asked about and filled with. A filter takes a block by the upper half of a
  // hash, and all entries of a merged run's part are alike in its first bits.
  ResultHash FilterHash(ResultHash hash) const {
    return LevelOf(number) == 0 ? hash : std::rotl(hash, 32);
  }

  // kCorrupt: the row is damaged.
  static Result<std::shared_ptr<const RunPart>> Load(Connection& connection, PartNumber number);
  // kCorrupt: the chunk is missing or damaged.
  Result<std::vector<IndexEntry>> ReadChunk(Connection& connection, std::size_t chunk) const;
};

// ---- for the writer, in a transaction

// Writes the next chunk of a part. Replaces one that a program wrote which ended too early.
Status WriteChunk(Connection& connection, RunPart& part, std::span<const IndexEntry> entries);
// The part is whole: writes its row.
Status WritePart(Connection& connection, const RunPart& part);
// Removes chunks of a part, at most `most`, and then its row. Returns how many chunks: fewer than
// `most` if the part is gone.
Result<std::size_t> RemovePart(Connection& connection, PartNumber number, std::size_t most);

class SortedRun {
 public:
  using Parts = std::vector<std::shared_ptr<const RunPart>>;
  explicit SortedRun(Parts parts);  // by hash; at least one

  const Parts& parts() const { return parts_; }
  std::size_t level() const { return LevelOf(parts_.front()->number); }
  ResultId first_id() const { return parts_.front()->first_id; }
  ResultId last_id() const { return parts_.front()->last_id; }

  // The first part that may have the hash.
  std::size_t PartOf(ResultHash hash) const;
  // PartOf(). Fetches what its filter has about the hash into the cache.
  std::size_t Prefetch(ResultHash hash) const;
  // Adds ids that have the hash, newest first, until there are `max`. `part`: from Prefetch().
  Status Find(Connection& connection, std::size_t part, ResultHash hash, std::size_t max,
              std::vector<ResultId>& ids) const;

 private:
  Parts parts_;
  std::vector<ResultHash> bounds_;  // the first hash of each part
};

using SortedRuns = std::vector<std::shared_ptr<const SortedRun>>;  // oldest first

// The place of an entry in a run, for reading it from there to its end.
class RunCursor {
 public:
  explicit RunCursor(std::shared_ptr<const SortedRun> run) : run_(std::move(run)) {}

  // Moves to the first entry, or to the first one behind `last`.
  Status Begin(Connection& connection);
  Status BeginAfter(Connection& connection, const IndexEntry& last);
  bool is_at_end() const { return part_ == run_->parts().size(); }
  const IndexEntry& entry() const { return entries_[at_]; }
  Status Advance(Connection& connection);

 private:
  Status Read(Connection& connection);

  std::shared_ptr<const SortedRun> run_;
  std::size_t part_ = 0;
  std::size_t chunk_ = 0;
  std::size_t at_ = 0;
  std::vector<IndexEntry> entries_;  // of the chunk
};

}  // namespace loopfleet::storage
