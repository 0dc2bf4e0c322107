#pragma once
// Checkpointer: folds the log into the database file on a thread of its own, while the writer goes
// on. A checkpoint changes nothing of what anybody reads, nor of what is durable: that is in the
// log until it is in the file. For the last part of it the writer stands still: only then can the
// log begin anew, and so it stays as short as without this.

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "common/base/result.h"
#include "storage/sqlite.h"

namespace loopfleet::storage {

class Checkpointer {
 public:
  // `writer` is the connection that writes; `log_pages`: how far the log may grow.
  static Result<std::unique_ptr<Checkpointer>> Start(Connection& writer, std::uint32_t log_pages);
  // Finishes what it is at.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // After each commit, on the writer's thread. What fails is tried again after a later one.
  void Committed();

 private:
  Checkpointer(Connection& writer, std::unique_ptr<Connection> own, std::uint32_t log_pages);
  void Run();
  void Begin();
  void AwaitIdle();

  Connection& writer_;
  const std::unique_ptr<Connection> own_;  // the thread's
  const std::uint32_t log_pages_;
  std::uint32_t last_pages_ = 0;  // in the log, after the last commit
  std::uint32_t begin_at_;        // as many pages

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_wanted_ = false;    // guarded by mutex_
  bool is_at_it_ = false;     // guarded by mutex_
  bool is_stopping_ = false;  // guarded by mutex_
  std::thread thread_;        // last: starts when everything else is there
};

}  // namespace loopfleet::storage
