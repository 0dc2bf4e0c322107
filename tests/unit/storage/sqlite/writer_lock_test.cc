// One writer: the second is refused, and one that was overtaken commits nothing.

#include "storage/sqlite/writer_lock.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

using WriterLockTest = ScratchDatabase;

// A process that holds the database until it is killed.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& path) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto store = SqliteStore::Open(path);
      if (!store || ::write(ready[1], "!", 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  ~Holder() { Kill(); }

  void Kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST_F(WriterLockTest, ASecondWriterIsToldWhoHoldsIt) {
  Holder holder(path());
  // It waits for kLockWait only, not for kBusyWait. The quickest of several attempts counts,
  // because a busy machine may delay any of them.
  std::chrono::nanoseconds quickest = std::chrono::hours(1);
  for (int i = 0; i < 20 && quickest >= std::chrono::seconds(2); ++i) {
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_FALSE(SqliteStore::Open(path()));
    quickest =
        std::min<std::chrono::nanoseconds>(quickest, std::chrono::steady_clock::now() - begun);
  }
  EXPECT_LT(quickest, std::chrono::seconds(2));
  const auto store = SqliteStore::Open(path());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::kUnavailable);
  EXPECT_NE(store.error().message.find("in use by process " + std::to_string(holder.pid()) + ":"),
            std::string::npos)
      << store.error().message;

  holder.Kill();  // the kernel frees what it held
  EXPECT_EQ(OpenStore()->epoch(), 2u);
}

TEST_F(WriterLockTest, AnotherNameOfTheFileIsTheSameFile) {
  const auto store = OpenStore();
  std::filesystem::create_symlink(path(), directory() / "alias.db");
  const auto second = SqliteStore::Open(directory() / "alias.db");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kUnavailable);
}

TEST_F(WriterLockTest, TheLockIsFreeOnceItsHolderIsGone) {
  OpenStore();
  OpenStore();
  EXPECT_EQ(OpenStore()->epoch(), 3u);
}

TEST_F(WriterLockTest, AnOvertakenWriterCommitsNothing) {
  const auto old_store = OpenStore();
  const std::vector<Write> first = {SomeBatch(1, {PlainSpec(2)})};
  ASSERT_TRUE(old_store->Apply(first));
  std::filesystem::remove(path().string() + ".lock");  // must never be done
  const auto new_store = OpenStore();
  EXPECT_EQ(new_store->epoch(), 2u);

  const std::vector<Write> late = {SomeBatch(2, {PlainSpec(3)})};
  const Status refused = old_store->Apply(late);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kClosed) << refused.error().message;
  EXPECT_FALSE(OpenReader()->FindBatch({2}).value());
  EXPECT_TRUE(new_store->Apply(late));
  EXPECT_EQ(OpenReader()->FindBatch({2}).value()->job_count, 1u);
}

}  // namespace
}  // namespace loopfleet::storage
