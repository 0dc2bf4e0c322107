// A full disk: a typed error, nothing half-written, and writes succeed once there is room.

#include <sys/mount.h>

#include <cstring>

#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr std::uint64_t kMaxBatches = 100'000;  // more than fits

std::vector<Write> BatchOf(std::uint64_t id) {
  return {SomeBatch(id, {PlainSpec(2), PlainSpec(3), PlainSpec(4)}),
          JobFinished{SomeOutcome({.batch = id, .index = 1}, PlainSpec(3), SomeMeasurement(1))}};
}

class DiskFullTest : public ScratchDatabase {
 protected:
  // Writes batches until one is refused. Returns how many were stored.
  std::uint64_t Fill(Store& store) {
    for (std::uint64_t id = 1; id <= kMaxBatches; ++id) {
      const Status status = store.Apply(BatchOf(id));
      if (status) continue;
      EXPECT_EQ(status.error().kind, ErrorKind::kFull) << status.error().message;
      EXPECT_NE(status.error().message.find("full"), std::string::npos) << status.error().message;
      return id - 1;
    }
    ADD_FAILURE() << "never full";
    return 0;
  }

  void ExpectExactly(const std::filesystem::path& path, std::uint64_t batches) {
    const auto reader = SqliteReader::Open(path).value();
    EXPECT_EQ(reader->NewestBatch().value()->batch, BatchId{batches});
    for (std::uint64_t id = 1; id <= batches; ++id) {
      ASSERT_EQ(reader->FindBatch({id}).value()->finished, 1u);
      ASSERT_EQ(reader->ReadOutcomes({id}, 0, {.max_rows = 10}).value().size(), 1u);
    }
  }
};

TEST_F(DiskFullTest, ABoundIsKeptAndCanBeRaised) {
  std::uint64_t stored = 0;
  {
    const auto store = OpenStore({.max_file_bytes = 512 << 10});
    stored = Fill(*store);
    EXPECT_GT(stored, 10u);
    ExpectExactly(path(), stored);
    // Batches differ by a few bytes, so one more may fit after one that did not; then no more.
    Status refused = store->Apply(BatchOf(stored + 1));
    while (refused) refused = store->Apply(BatchOf(++stored + 1));
    EXPECT_EQ(refused.error().kind, ErrorKind::kFull);
  }
  EXPECT_LE(std::filesystem::file_size(path()), 512u << 10);
  EXPECT_TRUE(OpenStore({.max_file_bytes = 1 << 20})->Apply(BatchOf(stored + 1)));
  ExpectExactly(path(), stored + 1);
}

class SmallDisk {
 public:
  explicit SmallDisk(std::filesystem::path where) : where_(std::move(where)) {
    std::filesystem::create_directory(where_);
    mounted_ = ::mount("none", where_.c_str(), "tmpfs", 0, "size=2m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount(where_.c_str());
  }
  bool mounted() const { return mounted_; }
  void Grow() { ASSERT_EQ(::mount("none", where_.c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0); }

 private:
  std::filesystem::path where_;
  bool mounted_ = false;
};

TEST_F(DiskFullTest, ARealDisk) {
  SmallDisk disk(directory() / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "SKIPPED: cannot mount a tmpfs: " << std::strerror(errno);
  const auto file = directory() / "disk" / "test.db";
  const auto store = SqliteStore::Open(file).value();
  const std::uint64_t stored = Fill(*store);
  EXPECT_GT(stored, 10u);
  ExpectExactly(file, stored);
  disk.Grow();
  const Status status = store->Apply(BatchOf(stored + 1));  // the same Store goes on
  EXPECT_TRUE(status) << status.error().message;
  ExpectExactly(file, stored + 1);
}

}  // namespace
}  // namespace loopfleet::storage
