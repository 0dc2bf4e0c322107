#include "storage/checkpointer.h"

#include <chrono>
#include <utility>

namespace loopfleet::storage {
namespace {

constexpr std::chrono::milliseconds kNoWait{0};  // whoever else is at it does the same

}  // namespace

Result<std::unique_ptr<Checkpointer>> Checkpointer::Start(Connection& writer,
                                                          std::uint32_t log_pages) {
  LF_TRY(auto own, Connection::Open(writer.path(), Access::kReadWriteCreate, kNoWait));
  writer.LeaveLog();
  return std::unique_ptr<Checkpointer>(new Checkpointer(writer, std::move(own), log_pages));
}

Checkpointer::Checkpointer(Connection& writer, std::unique_ptr<Connection> own,
                           std::uint32_t log_pages)
    : writer_(writer),
      own_(std::move(own)),
      log_pages_(log_pages),
      begin_at_(log_pages / 2),
      thread_([this] { Run(); }) {}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Checkpointer::Committed() {
  const std::uint32_t pages = writer_.pages_in_log();
  if (pages < std::exchange(last_pages_, pages)) begin_at_ = log_pages_ / 2;  // it began anew
  if (pages >= log_pages_) {
    AwaitIdle();
    (void)writer_.FoldLog();  // what came since the thread last began
  } else if (pages >= begin_at_) {
    begin_at_ = pages + log_pages_ / 8;
    Begin();
  }
}

void Checkpointer::Begin() {
  {
    const std::lock_guard lock(mutex_);
    is_wanted_ = true;
  }
  changed_.notify_all();
}

void Checkpointer::AwaitIdle() {
  std::unique_lock lock(mutex_);
  is_wanted_ = false;
  changed_.wait(lock, [&] { return !is_at_it_; });
}

void Checkpointer::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_wanted_ || is_stopping_; });
    if (is_stopping_) return;
    is_wanted_ = false;
    is_at_it_ = true;
    lock.unlock();
    (void)own_->FoldLog();
    lock.lock();
    is_at_it_ = false;
    changed_.notify_all();
  }
}

}  // namespace loopfleet::storage
