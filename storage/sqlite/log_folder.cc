#include "storage/sqlite/log_folder.h"

#include <utility>

#include "common/base/log.h"

namespace loopfleet::storage {

Status LogFolder::Fold(const std::filesystem::path& database, std::unique_ptr<Connection>& own) {
  if (own == nullptr) {
    LF_TRY(auto opened, Connection::Open(database, Access::kReadWriteCreate, kBusyWait));
    LF_TRY_VOID(opened->Number("PRAGMA schema_version"));  // it knows of the log from then on
    own = std::move(opened);
  }
  LF_TRY_VOID(own->FoldLog());
  return own->SyncFile();
}

LogFolder::LogFolder(Connection& writer, std::filesystem::path database, const Options& options)
    : writer_(writer), database_(std::move(database)), options_(options) {
  writer_.AfterCommit([this](std::uint32_t pages) { Committed(pages); });
}

LogFolder::~LogFolder() {
  writer_.AfterCommit(nullptr);
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LogFolder::Committed(std::uint32_t pages) {
  if (pages < asked_at_) asked_at_ = 0;  // the log began again
  if (pages >= options_.writer_pages) {
    // While the thread still folds, this does nothing, and the next commit tries again. The thread
    // is not asked again, so a slow disk does not keep the log from ending.
    (void)writer_.FoldLog();
  } else if (options_.beside_pages > 0 && pages - asked_at_ >= options_.beside_pages) {
    asked_at_ = pages;
    FoldBeside();
  }
}

void LogFolder::FoldBeside() {
  {
    std::lock_guard lock(mutex_);
    is_asked_ = true;
  }
  changed_.notify_one();
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

void LogFolder::Run() {
  std::unique_ptr<Connection> connection;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_asked_ || is_stopping_; });
      if (is_stopping_) return;
      is_asked_ = false;
    }
    // The writer meets the same trouble, and deals with it.
    if (const Status folded = Fold(database_, connection); !folded) {
      log::Warning("store.log_not_folded reason={}", folded.error().message);
    }
  }
}

}  // namespace loopfleet::storage
