#pragma once
// RunMerge: makes one run out of kFanIn runs of a level, a few chunks in each transaction. So N
// runs become about 15 * log16(N), and each entry is written again once for each level.
//
// The merged run is cut by hash into parts, each as large as a run of level 0. A program that ends
// in the middle leaves the parts that were whole, and the next one goes on behind them. The runs
// that are merged stay as they are until the new one is whole.
//
// Reads what is durable through a connection of its own: a connection that meets damage in a
// transaction may write nothing more in it.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "storage/sqlite/result_index/sorted_run.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class RunMerge {
 public:
  static constexpr std::size_t kFanIn = 16;

  struct Plan {
    SortedRuns inputs;        // next to each other, of one level
    SortedRun::Parts begun;   // parts of an earlier program, by hash
    PartNumber first_number;  // of the next part
    std::size_t part_entries;
  };
  explicit RunMerge(Plan plan) : plan_(std::move(plan)), parts_(plan_.begun) {}

  // Writes the next chunks, at most `most`. Returns how many.
  // kCorrupt: an input is damaged; this transaction may go on.
  Result<std::size_t> Step(Connection& source, Connection& connection, std::size_t most);
  bool is_whole() const { return is_whole_; }
  const SortedRuns& inputs() const { return plan_.inputs; }
  const SortedRun::Parts& parts() const { return parts_; }
  PartNumber next_number() const {
    return plan_.first_number + (parts_.size() - plan_.begun.size());
  }

  void Commit() { durable_ = parts_.size(); }
  // The transaction was rolled back: goes on behind the last part that is durable.
  void Rollback();

 private:
  Status Begin(Connection& source);
  Status WriteNextChunk(Connection& source, Connection& connection);
  void Push(std::size_t input);
  bool IsAfter(std::size_t a, std::size_t b) const;

  const Plan plan_;
  SortedRun::Parts parts_;  // whole ones
  std::size_t durable_ = parts_.size();
  bool is_whole_ = false;
  bool has_begun_ = false;
  std::vector<RunCursor> cursors_;    // one for each input
  std::vector<std::size_t> heap_;     // of cursors that are not at the end, the first entry on top
  std::shared_ptr<RunPart> growing_;  // null: none
  std::size_t grown_ = 0;             // its entries
  std::vector<IndexEntry> chunk_;
};

}  // namespace loopfleet::storage
