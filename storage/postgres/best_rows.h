#pragma once
// BestRows: rows of the table `best`, the fastest schedules of each program under each class of
// hardware, thread count and cache state, of all coordinators that write into one database.
//
// Invariant: a place (program, class, threads, cache) holds at most kMostOfPlace trees (more only
// until the next entry if two mirrors entered some at a time), each with the newest figure that was
// entered, and none that was in doubt. A figure that was in doubt when it came changes nothing.
//
// Remembers what the places hold, so that most figures, which are not among the fastest, cost no
// question.
//
// One thread. pqxx's exceptions pass through; after one, use another BestRows.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/clock.h"
#include "common/base/content_key.h"
#include "common/job/outcome.h"
#include "common/job/resolved_task.h"

namespace loopfleet::storage {

class BestRows {
 public:
  static constexpr std::size_t kMostOfPlace = 8;  // as BestTable::kMostOfPlace of SQLite
  explicit BestRows(const Clock& clock) : clock_(clock) {}

  // Enters what these outcomes measured, if it is among the fastest of its program. The doubts that
  // are known must be in the table before. `coordinator`: coordinators.id.
  void Note(pqxx::work& work, int coordinator, const std::vector<Outcome>& outcomes);
  // Call when others have changed the table.
  void Forget() { places_.clear(); }
  // Enters the rows that version 2 kept by the text of their benchmark.
  void EnterFormer(pqxx::connection& connection);

 private:
  using Place = std::tuple<ProgramKey, std::string, std::uint32_t, CacheState>;
  using Moment = std::chrono::sys_time<std::chrono::microseconds>;
  struct Entry {
    SubjectKey tree;
    double elapsed_ns = 0;
    Moment finished_at;
  };
  using Entries = std::vector<Entry>;  // the fastest first
  struct Figure {
    Entry entry;
    std::string worker;
    int coordinator = 0;
    std::uint64_t batch = 0;
    std::uint64_t sequence = 0;
  };
  using Found = std::map<Place, std::map<SubjectKey, std::vector<Figure>>>;  // the oldest first
  // What may change the rows: figures that are among the fastest, or of a tree that is.
  struct Candidate {
    const Place* place;
    const Figure* figure;
    bool is_in_doubt = false;
    bool was_never_trusted = false;  // in doubt when it came
  };
  class Rows;

  static constexpr std::size_t kMostPlaces = 65'536;
  // An operator may delete rows, which nothing tells.
  static constexpr std::chrono::minutes kLongestMemory{1};

  // At most a thousand, in a transaction of their own. False: there are no more.
  bool EnterSomeFormer(pqxx::connection& connection);
  // None: it is no program.
  std::optional<ProgramKey> ProgramOf(const looptree::Source& benchmark);
  static void Add(Found& found, const Place& place, const Figure& figure);
  void Enter(pqxx::work& work, const Found& found);
  void ReadPlaces(pqxx::work& work, const Found& found);
  std::vector<Candidate> CandidatesAmong(const Found& found) const;
  static void ReadDoubts(pqxx::work& work, std::vector<Candidate>& candidates);

  const Clock& clock_;
  std::map<ContentKey, std::optional<ProgramKey>> programs_;  // by the benchmark's text
  std::map<Place, Entries> places_;
  Instant remembers_since_;
};

}  // namespace loopfleet::storage
