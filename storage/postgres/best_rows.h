#pragma once
// BestRows: rows of the table `best`, the fastest schedules of each program under each class of
// hardware, thread count and cache state, of all coordinators that write into one database.
//
// Invariant: a place (program, class, threads, cache) holds at most kMostOfPlace trees (more only
// until the next entry if two mirrors entered some at a time), each with the newest figure that was
// entered, and none that was in doubt.
//
// One thread. pqxx's exceptions pass through.

#include <cstddef>
#include <map>
#include <optional>
#include <pqxx/pqxx>
#include <vector>

#include "common/base/content_key.h"
#include "common/job/outcome.h"
#include "common/job/outcome_json.h"
#include "common/job/resolved_task.h"

namespace loopfleet::storage {

class BestRows {
 public:
  static constexpr std::size_t kMostOfPlace = 8;  // as BestTable::kMostOfPlace of SQLite

  // Enters what these outcomes measured, if it is among the fastest of its program.
  // `coordinator`: coordinators.id.
  void Note(pqxx::work& work, int coordinator, const std::vector<Outcome>& outcomes);
  // Enters the rows that version 2 kept by the text of their benchmark.
  void EnterFormer(pqxx::connection& connection);

 private:
  // At most a thousand, in a transaction of their own. False: there are no more.
  bool EnterSomeFormer(pqxx::connection& connection);
  // None: it is no program.
  std::optional<ProgramKey> ProgramOf(const looptree::Source& benchmark);

  std::map<ContentKey, std::optional<ProgramKey>> programs_;  // by the benchmark's text
};

}  // namespace loopfleet::storage
