// A power failure, an error and a full disk at every disk operation: what was acknowledged is
// there, errors are typed, the file always opens again, and a migration is complete or never began.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "storage/sqlite/log_folder.h"
#include "tests/support/crash_vfs.h"
#include "tests/support/paths.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

// Small, so that a short run folds its log, seals runs many times, and merges them.
constexpr StoreOptions kOptions{.log_pages = 24, .run_entries = 2};
constexpr std::uint64_t kGroups = 20;
constexpr std::uint64_t kSeeds = 3;

// Group n: batch n with three jobs, one of them finished, and a second outcome for batch n - 1.
std::vector<Write> Group(std::uint64_t n) {
  JobsAccepted accepted = SomeBatch(n, {PlainSpec(2), PlainSpec(3), FullSpec()});
  accepted.request_id.bytes.fill(static_cast<std::uint8_t>(n));
  std::vector<Write> writes = {
      accepted, JobFinished{SomeOutcome({.batch = n, .index = 1, .sequence = 1}, PlainSpec(3),
                                        SomeMeasurement(static_cast<std::uint8_t>(n)))}};
  if (n > 1) {
    writes.push_back(
        JobFinished{SomeOutcome({.batch = n - 1, .index = 0, .sequence = 2}, PlainSpec(2),
                                n % 3 == 0 ? BareFailure(FailureCode::kExpired)
                                           : SomeMeasurement(static_cast<std::uint8_t>(100 + n)))});
  }
  return writes;
}

class PowerFailureTest : public ScratchDatabase {
 protected:
  // Opens the store and writes groups from `next` on until one fails. Returns how many are
  // acknowledged in all.
  std::uint64_t Write(std::uint64_t next) {
    const auto store = SqliteStore::Open(path(), kOptions);
    if (!store) return next - 1;
    std::unique_ptr<Connection> folder;
    for (; next <= kGroups; ++next) {
      if (!(*store)->Apply(Group(next))) break;
      if (folds_beside_) (void)LogFolder::Fold(path(), folder);
    }
    return next - 1;
  }

  // Expects exactly the first `acknowledged` groups, or one more. Returns how many.
  std::uint64_t ExpectIntact(std::uint64_t acknowledged) {
    const auto store = OpenStore(kOptions);
    const auto reader = OpenReader();
    const Recovery recovery = store->Recover().value();
    const std::uint64_t stored = recovery.next_batch - 1;
    EXPECT_GE(stored, acknowledged);
    EXPECT_LE(stored, acknowledged + 1);
    EXPECT_TRUE(recovery.damaged.empty());
    EXPECT_EQ(recovery.jobs.size(), stored == 0 ? 0 : stored + 1);
    for (std::uint64_t n = 1; n <= stored; ++n) {
      const std::size_t finished = n < stored ? 2 : 1;
      EXPECT_EQ(reader->FindBatch({n}).value()->finished, finished);
      EXPECT_EQ(reader->ReadOutcomes({n}, 0, {.max_rows = 10}).value().size(), finished);
      const auto found = reader->FindResult(KeyFor(SomeMeasurement(static_cast<std::uint8_t>(n))));
      EXPECT_TRUE(found && *found) << "result of group " << n;
    }
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM pragma_integrity_check "
                           "WHERE integrity_check <> 'ok'"),
              0);
    return stored;
  }

  // An operation of a run: of one that makes the store, or of one on a store that holds nothing.
  struct Moment {
    bool makes_store;
    std::uint64_t at;  // 1: the first operation
  };
  friend std::ostream& operator<<(std::ostream& out, const Moment& moment) {
    return out << "operation " << moment.at << (moment.makes_store ? " of making the store" : "");
  }

  // Every operation of runs without faults. Making the store takes most of a run, so that only
  // those runs do it that are to fail there.
  std::vector<Moment> EveryMoment() {
    std::vector<Moment> moments;
    const auto note = [&](bool makes_store, const CrashVfs& disk) {
      for (std::uint64_t at = 1; at <= disk.operations(); ++at)
        moments.push_back({makes_store, at});
    };
    {
      CrashVfs disk;
      OpenStore(kOptions);
      note(true, disk);
      new_store_ = disk.Get(path());
    }
    CrashVfs disk;
    disk.Put(path(), new_store_);
    EXPECT_EQ(Write(1), kGroups);
    note(false, disk);
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM merged_runs"), 1);
    return moments;
  }

  void FailAt(CrashVfs& disk, const Moment& moment, DiskFault fault,
              CrashVfs::Lasting lasting = CrashVfs::Lasting::kOnce) {
    if (!moment.makes_store) disk.Put(path(), new_store_);
    disk.FailAt(moment.at, fault, lasting);
  }

  // Returns how often the power failed: at each operation, or at each `step`th.
  std::uint64_t FailAtEveryOperation(std::size_t step = 1) {
    const std::vector<Moment> moments = EveryMoment();
    std::uint64_t failures = 0;
    for (std::size_t next = 0; next < moments.size() && !HasFailure(); next += step) {
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        SCOPED_TRACE(::testing::Message()
                     << "power failure at " << moments[next] << ", seed " << seed);
        CrashVfs disk;
        FailAt(disk, moments[next], DiskFault::kDeath);
        const std::uint64_t acknowledged = Write(1);
        EXPECT_TRUE(disk.failed());
        disk.Reboot(moments[next].at * 1000 + seed);
        const std::uint64_t stored = ExpectIntact(acknowledged);
        EXPECT_EQ(Write(stored + 1), kGroups);  // and goes on
        ++failures;
      }
    }
    return failures;
  }

  // As LogFolder's thread does, but in turns: CrashVfs is for one thread at a time.
  bool folds_beside_ = false;
  std::string new_store_;  // the file of a store that holds nothing; EveryMoment() makes it
};

TEST_F(PowerFailureTest, AtEveryOperation) {
  const std::uint64_t failures = FailAtEveryOperation();
  EXPECT_GE(failures, 2000u);
  RecordProperty("power_failures", static_cast<int>(failures));
}

TEST_F(PowerFailureTest, WhileTheLogIsFoldedBesideTheWriter) {
  const std::size_t without = EveryMoment().size();
  folds_beside_ = true;
  EXPECT_GT(EveryMoment().size(), without);
  EXPECT_GE(FailAtEveryOperation(13), 150u);
}

// Power fails a second time while the first failure is being recovered from.
TEST_F(PowerFailureTest, TwiceInARow) {
  const std::vector<Moment> moments = EveryMoment();
  SplitMix64 random(5);
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    const Moment& first = moments[random.Below(moments.size())];
    const std::uint64_t second = 1 + random.Below(40);
    SCOPED_TRACE(::testing::Message()
                 << "round " << round << ": " << first << ", then operation " << second);
    CrashVfs disk;
    FailAt(disk, first, DiskFault::kDeath);
    std::uint64_t acknowledged = Write(1);
    disk.Reboot(random.Next());
    disk.FailAt(second, DiskFault::kDeath);
    {
      // It may have stored one group more than it acknowledged.
      auto store = SqliteStore::Open(path(), kOptions);
      if (store) {
        std::uint64_t next = acknowledged + 1;
        const auto recovery = (*store)->Recover();
        if (recovery) {
          next = recovery->next_batch;
          acknowledged = next - 1;  // read from a disk that has no unsynced bytes
        }
        for (; recovery && next <= kGroups && (*store)->Apply(Group(next)); ++next) {
          acknowledged = next;
        }
      }
    }
    disk.Reboot(random.Next());
    ExpectIntact(acknowledged);
  }
}

class DiskFaultTest : public PowerFailureTest {
 protected:
  // Injects the fault at every operation. Expects an error of the right kind, every acknowledged
  // group on disk, and the same Store to continue once the fault is mended; then the power fails.
  void EveryOperation(DiskFault fault, CrashVfs::Lasting lasting) {
    for (const Moment& moment : EveryMoment()) {
      if (HasFailure()) break;
      SCOPED_TRACE(::testing::Message() << "fault at " << moment);
      CrashVfs disk;
      FailAt(disk, moment, fault, lasting);
      auto store = SqliteStore::Open(path(), kOptions);
      if (!store) {
        ExpectKind(store.error(), fault);
        disk.Mend();
        store = SqliteStore::Open(path(), kOptions);
        ASSERT_TRUE(store) << store.error().message;
      }
      std::uint64_t refused = 0;
      for (std::uint64_t next = 1; next <= kGroups;) {
        const Status applied = (*store)->Apply(Group(next));
        if (applied) {
          ++next;
          continue;
        }
        ExpectKind(applied.error(), fault);
        ASSERT_LT(++refused, 3u) << "does not go on by itself: " << applied.error().message;
        disk.Mend();  // there is room again
      }
      disk.FailAt(disk.operations() + 1, DiskFault::kDeath);
      store->reset();
      disk.Reboot(moment.at);
      EXPECT_EQ(ExpectIntact(kGroups), kGroups);
    }
  }

  static void ExpectKind(const Error& error, DiskFault fault) {
    const bool is_full = fault == DiskFault::kFull;
    EXPECT_EQ(error.kind, is_full ? ErrorKind::kFull : ErrorKind::kSystem) << error.message;
  }
};

TEST_F(DiskFaultTest, FullOnce) { EveryOperation(DiskFault::kFull, CrashVfs::Lasting::kOnce); }
TEST_F(DiskFaultTest, FullUntilThereIsRoom) {
  EveryOperation(DiskFault::kFull, CrashVfs::Lasting::kUntilMended);
}
TEST_F(DiskFaultTest, IoErrorOnce) {
  EveryOperation(DiskFault::kIoError, CrashVfs::Lasting::kOnce);
}
TEST_F(DiskFaultTest, IoErrorsUntilMended) {
  EveryOperation(DiskFault::kIoError, CrashVfs::Lasting::kUntilMended);
}

// Power failures while a database of version 1 is migrated.
class MigrationFailureTest : public ScratchDatabase {
 protected:
  static std::string OldDatabase() {
    std::ifstream file(LOOPFLEET_SOURCE_DIR "/tests/golden/storage/1.db", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // 0: an error.
  std::int64_t VersionByHand() { return OpenByHand()->Number("PRAGMA user_version").value_or(0); }
};

TEST_F(MigrationFailureTest, OldOrNewAtEveryOperation) {
  constexpr std::int64_t kNewest = 23;  // storage/sqlite/migrations
  const std::string old = OldDatabase();
  ASSERT_GT(old.size(), 10'000u);
  std::uint64_t operations = 0;
  {
    CrashVfs disk;
    disk.Put(path(), old);
    OpenStore(kOptions);
    operations = disk.operations();
  }
  std::uint64_t migrated = 0;
  for (std::uint64_t at = 1; at <= operations && !HasFailure(); ++at) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(
          fmt::format("power failure at operation {} of {}, seed {}", at, operations, seed));
      CrashVfs disk;
      disk.Put(path(), old);
      disk.FailAt(at, DiskFault::kDeath);
      SqliteStore::Open(path(), kOptions).value_or(nullptr).reset();
      disk.Reboot(at * 1000 + seed);
      const std::int64_t version = VersionByHand();
      EXPECT_TRUE(version == 1 || version == kNewest) << version;
      migrated += version == kNewest;
      EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results"), 5);  // readable in every version
      const auto store = OpenStore(kOptions);
      EXPECT_EQ(VersionByHand(), kNewest);
      const auto reader = OpenReader();
      EXPECT_EQ(reader->ReadOutcomes({1}, 0, {.max_rows = 10}).value().size(), 2u);
      EXPECT_EQ(reader->ReadOutcomes({2}, 0, {.max_rows = 10}).value().size(), 3u);
      EXPECT_EQ(store->Recover().value().jobs.size(), 3u);
      EXPECT_TRUE(reader->FindResult(KeyFor(SomeMeasurement(1))).value());
    }
  }
  EXPECT_GT(migrated, 0u);
}

}  // namespace
}  // namespace loopfleet::storage
