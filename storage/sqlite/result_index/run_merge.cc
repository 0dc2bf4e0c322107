#include "storage/sqlite/result_index/run_merge.h"

#include <algorithm>
#include <utility>

namespace loopfleet::storage {

bool RunMerge::IsAfter(std::size_t a, std::size_t b) const {
  return IsBefore(cursors_[b].entry(), cursors_[a].entry());
}

void RunMerge::Push(std::size_t input) {
  if (cursors_[input].is_at_end()) return;
  heap_.push_back(input);
  std::ranges::push_heap(heap_, [this](auto a, auto b) { return IsAfter(a, b); });
}

Status RunMerge::Begin(Connection& source) {
  cursors_.clear();
  heap_.clear();
  for (const auto& run : plan_.inputs) cursors_.emplace_back(run);
  if (parts_.empty()) {
    for (RunCursor& cursor : cursors_) LF_TRY_VOID(cursor.Begin(source));
  } else {
    const RunPart& last = *parts_.back();
    LF_TRY(const auto entries, last.ReadChunk(source, last.directory.size() - 1));
    for (RunCursor& cursor : cursors_) LF_TRY_VOID(cursor.BeginAfter(source, entries.back()));
  }
  for (std::size_t i = 0; i < cursors_.size(); ++i) Push(i);
  has_begun_ = true;
  return {};
}

Result<std::size_t> RunMerge::Step(Connection& source, Connection& connection, std::size_t most) {
  if (!has_begun_) LF_TRY_VOID(Begin(source));
  std::size_t written = 0;
  for (; written < most && !is_whole_; ++written) LF_TRY_VOID(WriteNextChunk(source, connection));
  return written;
}

Status RunMerge::WriteNextChunk(Connection& source, Connection& connection) {
  if (growing_ == nullptr) {
    growing_ = std::make_shared<RunPart>();
    growing_->number = next_number();
    growing_->first_id = plan_.inputs.front()->first_id();
    growing_->last_id = plan_.inputs.back()->last_id();
    growing_->filter = NewFilter(plan_.part_entries);
    grown_ = 0;
  }
  chunk_.clear();
  while (!heap_.empty() && chunk_.size() < RunPart::kChunkEntries && grown_ < plan_.part_entries) {
    std::ranges::pop_heap(heap_, [this](auto a, auto b) { return IsAfter(a, b); });
    const std::size_t input = heap_.back();
    heap_.pop_back();
    const IndexEntry& entry = chunk_.emplace_back(cursors_[input].entry());
    AddTo(growing_->filter, growing_->FilterHash(entry.hash));
    ++grown_;
    LF_TRY_VOID(cursors_[input].Advance(source));
    Push(input);
  }
  if (!chunk_.empty()) LF_TRY_VOID(WriteChunk(connection, *growing_, chunk_));
  is_whole_ = heap_.empty();
  if (!is_whole_ && grown_ < plan_.part_entries) return {};
  if (grown_ > 0) {
    LF_TRY_VOID(WritePart(connection, *growing_));
    parts_.push_back(growing_);
  }
  growing_.reset();
  return {};
}

void RunMerge::Rollback() {
  parts_.resize(durable_);
  growing_.reset();
  is_whole_ = false;
  has_begun_ = false;
}

}  // namespace loopfleet::storage
