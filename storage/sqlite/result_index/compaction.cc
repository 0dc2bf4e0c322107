#include "storage/sqlite/result_index/compaction.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "storage/sqlite/migrations.h"

namespace loopfleet::storage {
namespace {

// A transaction has 5,000 results at most, whose 10,000 entries owe 120 chunks. To merge a chunk
// and to remove those that it came from took about 0.1 ms (bench/run.sh bounds, 12 million
// results).
constexpr std::size_t kMostChunks = 128;
constexpr std::size_t kFewestChunks = 2;

}  // namespace

Compaction::Compaction(std::size_t part_entries) : part_entries_(part_entries) {
  for (std::size_t level = 0; level < kRunLevels; ++level) {
    next_number_[level] = FirstOfLevel(level) + 1;
  }
}

Status Compaction::Resume(Connection& connection, const RunCatalog& catalog) {
  for (std::size_t level = 0; level < kRunLevels; ++level) {
    next_number_[level] = catalog.newest[level] + 1;
  }
  for (const PartNumber number : catalog.retired) retired_.push_back({number, {}});
  std::array<bool, kRunLevels> is_damaged{};
  for (const PartNumber number : catalog.begun) {
    auto part = RunPart::Load(connection, number);
    if (part) {
      begun_[LevelOf(number)].push_back(*std::move(part));
    } else if (part.error().kind == ErrorKind::kCorrupt) {
      is_damaged[LevelOf(number)] = true;
    } else {
      return std::unexpected(std::move(part).error());
    }
  }
  for (const PartNumber number : catalog.begun) {
    if (!is_damaged[LevelOf(number)]) continue;
    retired_.push_back({number, {}});
    begun_[LevelOf(number)].clear();
  }
  return {};
}

void Compaction::Begin(std::size_t level, const SortedRuns& runs) {
  if (merges_[level] || is_damaged_[level]) return;
  SortedRuns inputs;
  for (const auto& run : runs) {
    if (run->level() == level && inputs.size() < RunMerge::kFanIn) inputs.push_back(run);
  }
  if (inputs.size() < RunMerge::kFanIn) return;
  SortedRun::Parts begun = std::exchange(begun_[level + 1], {});
  const bool fits = std::ranges::all_of(begun, [&](const auto& part) {
    return part->first_id == inputs.front()->first_id() &&
           part->last_id == inputs.back()->last_id();
  });
  if (!fits) {  // of a version that merged other numbers of runs
    for (const auto& part : begun) retired_.push_back({part->number, {}});
    begun.clear();
  }
  merges_[level].emplace(RunMerge::Plan{.inputs = std::move(inputs),
                                        .begun = std::move(begun),
                                        .first_number = next_number_[level + 1],
                                        .part_entries = part_entries_});
}

Status Compaction::Step(Connection& connection, const SortedRuns& runs) {
  const std::size_t most =
      std::min(kMostChunks, owed_entries_ / RunPart::kChunkEntries + kFewestChunks);
  std::size_t written = 0;
  bool is_merging = false;
  for (std::size_t level = 0; level < merges_.size(); ++level) {
    Begin(level, runs);
    if (!merges_[level]) continue;
    is_merging = true;
    LF_TRY(const std::size_t chunks, StepLevel(connection, level, most - written));
    written += chunks;
  }
  paid_entries_ = is_merging ? written * RunPart::kChunkEntries : owed_entries_;
  return Remove(connection, 2 * written + kFewestChunks);
}

Result<std::size_t> Compaction::StepLevel(Connection& connection, std::size_t level,
                                          std::size_t most) {
  if (most == 0) return 0;
  if (source_ == nullptr) {
    LF_TRY(source_, Connection::Open(connection.path(), Access::kReadOnly, kBusyWait));
  }
  if (!is_raised_) {
    LF_TRY_VOID(RaiseOldestProgram(connection, 16));
    is_raised_ = true;
  }
  RunMerge& merge = *merges_[level];
  const auto chunks = merge.Step(*source_, connection, most);
  if (!chunks && chunks.error().kind == ErrorKind::kCorrupt) {
    log::Warning("store.merge_stopped level={} reason={}", level, chunks.error().message);
    next_number_[level + 1] = merge.next_number();
    merges_[level].reset();
    is_damaged_[level] = true;
    return 0;
  }
  if (chunks && merge.is_whole()) LF_TRY_VOID(End(connection, merge));
  return chunks;
}

Status Compaction::End(Connection& connection, const RunMerge& merge) {
  {
    LF_TRY(Query insert, connection.Start("INSERT INTO merged_runs VALUES (?,?,?)"));
    LF_TRY_VOID(insert.Add(merge.parts().front()->number)
                    .Add(merge.parts().back()->number)
                    .AddChecksum()
                    .Run());
  }
  for (const auto& run : merge.inputs()) {
    {
      LF_TRY(Query remove, connection.Start("DELETE FROM merged_runs WHERE first_part = ?"));
      LF_TRY_VOID(remove.Add(run->parts().front()->number).Run());
    }
    for (const auto& part : run->parts()) {
      LF_TRY(Query retire, connection.Start("INSERT INTO retired_runs VALUES (?,?)"));
      LF_TRY_VOID(retire.Add(part->number).AddChecksum().Run());
    }
  }
  return {};
}

Status Compaction::Remove(Connection& connection, std::size_t chunks) {
  while (chunks > 0 && removed_ < retired_.size()) {
    const Retired& oldest = retired_[removed_];
    if (!oldest.part.expired()) return {};
    LF_TRY(const std::size_t gone, RemovePart(connection, oldest.number, chunks));
    if (gone == chunks) return {};
    chunks -= gone;
    LF_TRY(Query query, connection.Start("DELETE FROM retired_runs WHERE run = ?"));
    LF_TRY_VOID(query.Add(oldest.number).Run());
    ++removed_;
  }
  return {};
}

bool Compaction::Commit(SortedRuns& runs) {
  owed_entries_ -= std::min(std::exchange(paid_entries_, 0), owed_entries_);
  retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(removed_));
  removed_ = 0;
  bool is_new = false;
  for (std::size_t level = 0; level < merges_.size(); ++level) {
    std::optional<RunMerge>& merge = merges_[level];
    if (!merge) continue;
    merge->Commit();
    if (!merge->is_whole()) continue;
    for (const auto& run : merge->inputs()) {
      for (const auto& part : run->parts()) retired_.push_back({part->number, part});
    }
    const auto first = std::ranges::find(runs, merge->inputs().front());
    *first = std::make_shared<const SortedRun>(merge->parts());
    runs.erase(first + 1, first + RunMerge::kFanIn);
    next_number_[level + 1] = merge->next_number();
    merge.reset();
    is_new = true;
  }
  return is_new;
}

void Compaction::Rollback() {
  paid_entries_ = 0;
  removed_ = 0;
  is_raised_ = false;
  for (auto& merge : merges_) {
    if (merge) merge->Rollback();
  }
}

}  // namespace loopfleet::storage
