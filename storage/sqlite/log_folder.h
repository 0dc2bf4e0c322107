#pragma once
// LogFolder: keeps the log (WAL) of a database short by copying its pages into the file, mostly on
// a thread of its own, so that commits need not wait for it. The log begins again at its front once
// all of it is folded, and only the writer can see to that: it folds what was appended meanwhile.
//
// Thread: the writer's. The folding thread starts when there is something to fold.

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "common/base/result.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class LogFolder {
 public:
  struct Options {
    std::uint32_t beside_pages = 0;  // pages to be appended before the thread folds; 0: no thread
    std::uint32_t writer_pages = 0;  // pages in the log before the writer folds the rest
  };
  // Used by each commit of `writer`, which must outlive it.
  LogFolder(Connection& writer, std::filesystem::path database, const Options& options);
  ~LogFolder();
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;

  // What the thread does each time, over a connection of its own, which the first pass opens. What
  // is folded is durable then. Errors as of Store::Apply().
  static Status Fold(const std::filesystem::path& database, std::unique_ptr<Connection>& own);

 private:
  void Committed(std::uint32_t pages);
  void FoldBeside();
  void Run();

  Connection& writer_;
  const std::filesystem::path database_;
  const Options options_;
  std::uint32_t asked_at_ = 0;  // pages in the log when the thread was last asked to fold

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_asked_ = false;     // guarded by mutex_
  bool is_stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace loopfleet::storage
