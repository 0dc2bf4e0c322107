#include "coordinator/shell/storage_thread.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <tuple>

#include "common/fleet/attention.h"
#include "coordinator/shell/observer.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/sqlite_reader.h"
#include "storage/sqlite/sqlite_store.h"
#include "tests/support/crash_vfs.h"
#include "tests/unit/coordinator/shell/coordinator_process.h"

namespace loopfleet::coordinator {
namespace {

storage::JobsAccepted Acceptance(std::uint64_t batch, std::size_t tag_bytes) {
  storage::JobsAccepted accepted{.batch = BatchId{batch},
                                 .client = Uuid::Random(),
                                 .request_id = Uuid::Random(),
                                 .request_digest = "digest"};
  accepted.jobs.push_back({.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm8_8_8"},
                           .tag = '"' + std::string(tag_bytes, 'x') + '"'});
  return accepted;
}

storage::JobFinished Failed(std::uint64_t batch) {
  storage::JobFinished finished{.outcome = {.job = {.batch = BatchId{batch}}, .sequence = 1}};
  finished.outcome.evaluation.verdict = Failure{.code = FailureCode::kCancelled};
  return finished;
}

Persist ToPersist(Token token, storage::Write write, WhenFull when_full) {
  Persist persist{.token = token, .when_full = when_full};
  persist.writes.push_back(std::move(write));
  return persist;
}

class StorageThreadTest : public testing::Test {
 protected:
  void Open(std::uint64_t max_file_bytes, const Keep& keep = {}) {
    auto opened =
        storage::SqliteStore::Open(dir.path() / "test.db", {.max_file_bytes = max_file_bytes});
    ASSERT_TRUE(opened) << opened.error().message;
    store = *std::move(opened);
    ASSERT_TRUE(store->Recover());
    thread = std::make_unique<StorageThread>(*store, metrics, clock, wakeup, keep);
  }

  // The next events, which say of `count` writes what became of them.
  std::vector<Event> Events(std::size_t count) {
    std::vector<Event> events;
    std::size_t writes = 0;
    Await("storage", [&] {
      for (Event& event : thread->TakeEvents()) {
        const auto* persisted = std::get_if<Persisted>(&event);
        writes += persisted == nullptr ? 1 : persisted->tokens.size();
        events.push_back(std::move(event));
      }
      return writes >= count || thread->fatal();
    });
    EXPECT_EQ(writes, count);
    return events;
  }

  PrivateDir dir;
  SystemClock clock;
  monitoring::Registry registry;
  monitoring::CoordinatorMetrics metrics{registry, AllLabels()};
  wire::Wakeup wakeup;
  std::unique_ptr<storage::SqliteStore> store;
  std::unique_ptr<StorageThread> thread;
};

TEST_F(StorageThreadTest, WhatItSaysIsOnDisk) {
  Open(0);
  for (Token token = 1; token <= 50; ++token) {
    thread->Write(ToPersist(token, Acceptance(token, 10), WhenFull::kRefuse));
  }
  Token expected = 0;
  for (const Event& event : Events(50)) {
    for (const Token token : std::get<Persisted>(event).tokens) EXPECT_EQ(token, ++expected);
  }
  const auto reader = storage::SqliteReader::Open(dir.path() / "test.db");
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->ListBatches(100)->size(), 50u);
}

storage::JobFinished Measured(std::uint64_t batch, WallTime at) {
  storage::JobFinished finished{
      .outcome = {.job = {.batch = BatchId{batch}}, .sequence = 1, .finished_at = at}};
  Evaluation& evaluation = finished.outcome.evaluation;
  evaluation.verdict = Measurement{.elapsed_ns = 5,
                                   .elapsed_low_ns = 5,
                                   .elapsed_high_ns = 5,
                                   .elapsed_min_ns = 5,
                                   .elapsed_mean_ns = 5,
                                   .samples_ns = {5, 5, 5},
                                   .sample_flags = {0, 0, 0}};
  evaluation.subject.emplace().bytes.fill(static_cast<std::uint8_t>(batch));
  evaluation.conditions.emplace();
  return finished;
}

// In several transactions, the first of them with the order itself.
TEST_F(StorageThreadTest, AllThatIsSuspectedIsFlaggedInTheEnd) {
  constexpr std::uint32_t kResults = 12'000;
  Open(0);
  storage::JobsAccepted accepted = Acceptance(1, 10);
  accepted.jobs.resize(kResults, accepted.jobs.front());
  thread->Write(ToPersist(1, accepted, WhenFull::kRefuse));
  Persist results{.token = 2};
  for (std::uint32_t i = 0; i < kResults; ++i) {
    storage::JobFinished finished = Measured(1, clock.WallNow());
    finished.outcome.job.index = i;
    finished.outcome.sequence = i + 1;
    finished.outcome.worker = "w";
    results.writes.emplace_back(std::move(finished));
  }
  thread->Write(std::move(results));
  thread->Write(ToPersist(3, storage::ResultsSuspected{.worker = "w"}, WhenFull::kRetry));
  Events(3);
  const auto database = storage::Connection::Open(
      dir.path() / "test.db", storage::Access::kReadOnly, std::chrono::seconds(5));
  const auto count = [&](const char* sql) { return (*database)->Number(sql).value(); };
  Await("the results to be flagged",
        [&] { return count("SELECT count(*) FROM suspect_results") == kResults; });
  Await("the order to end", [&] { return count("SELECT count(*) FROM suspicions") == 0; });
}

// The thread thins while it has nothing to write, and still writes what arrives.
TEST_F(StorageThreadTest, OldSamplesGoWhileItIdles) {
  Open(0, {.samples = std::chrono::days(30)});
  const auto samples_of = [&](std::uint64_t batch) {
    const auto reader = storage::SqliteReader::Open(dir.path() / "test.db").value();
    return reader->ReadOutcomes({batch}, 0, {.max_rows = 1}).value().at(0).evaluation.measurement();
  };
  const WallTime now = clock.WallNow();
  // This thread's first pass may end before these are written, so the next thread thins them.
  thread->Write(ToPersist(1, Acceptance(1, 10), WhenFull::kRefuse));
  thread->Write(ToPersist(2, Measured(1, now - std::chrono::days(31)), WhenFull::kRetry));
  thread->Write(ToPersist(3, Acceptance(2, 10), WhenFull::kRefuse));
  thread->Write(ToPersist(4, Measured(2, now - std::chrono::days(29)), WhenFull::kRetry));
  Events(4);
  thread.reset();
  thread = std::make_unique<StorageThread>(*store, metrics, clock, wakeup,
                                           Keep{.samples = std::chrono::days(30)});
  Await("the old samples to go", [&] { return samples_of(1).samples_ns.empty(); });
  EXPECT_EQ(samples_of(1).thinned, (Thinned{.samples_before = 3, .accepted_before = 3}));
  EXPECT_EQ(samples_of(2).samples_ns.size(), 3u);
  thread->Write(ToPersist(5, Acceptance(3, 10), WhenFull::kRefuse));
  Events(1);
}

TEST_F(StorageThreadTest, SamplesAreKeptForEverUnlessSaidOtherwise) {
  Open(0);
  thread->Write(ToPersist(1, Acceptance(1, 10), WhenFull::kRefuse));
  thread->Write(ToPersist(2, Measured(1, WallTime{}), WhenFull::kRetry));
  Events(2);
  thread.reset();
  thread = std::make_unique<StorageThread>(*store, metrics, clock, wakeup);
  EXPECT_FALSE(Retention(*store, clock, {}).is_on());
  thread->Write(ToPersist(3, Acceptance(2, 10), WhenFull::kRefuse));
  Events(1);
  const auto reader = storage::SqliteReader::Open(dir.path() / "test.db").value();
  const auto outcomes = reader->ReadOutcomes({1}, 0, {.max_rows = 1}).value();
  EXPECT_EQ(outcomes.at(0).evaluation.measurement().samples_ns.size(), 3u);
}

// Samples and batches have ages of their own. The newest batch stays, whatever its age.
TEST_F(StorageThreadTest, OldBatchesGoWhileItIdles) {
  Open(0);
  const WallTime now = clock.WallNow();
  const auto put = [&](std::uint64_t batch, WallTime at) {
    storage::JobsAccepted accepted = Acceptance(batch, 10);
    accepted.accepted_at = at;
    thread->Write(ToPersist(2 * batch, std::move(accepted), WhenFull::kRefuse));
    thread->Write(ToPersist(2 * batch + 1, Measured(batch, at), WhenFull::kRetry));
    Events(2);
  };
  put(1, now - std::chrono::days(41));
  put(2, now - std::chrono::days(35));
  put(3, now - std::chrono::days(29));
  thread.reset();
  const Keep keep{.samples = std::chrono::days(30), .batches = std::chrono::days(40)};
  thread = std::make_unique<StorageThread>(*store, metrics, clock, wakeup, keep);
  const auto reader = storage::SqliteReader::Open(dir.path() / "test.db").value();
  Await("the old batch to go", [&] { return !reader->FindBatch({1}).value(); });
  const auto samples_of = [&](std::uint64_t batch) {
    const auto outcomes = reader->ReadOutcomes({batch}, 0, {.max_rows = 1}).value();
    return outcomes.at(0).evaluation.measurement().samples_ns.size();
  };
  EXPECT_EQ(samples_of(2), 0u);
  EXPECT_EQ(samples_of(3), 3u);
  put(4, now);
}

TEST_F(StorageThreadTest, OldBatchesStayUntilTheyMayBeDeleted) {
  store = storage::SqliteStore::Open(dir.path() / "test.db").value();
  const WallTime old = clock.WallNow() - std::chrono::days(50);
  storage::JobsAccepted accepted = Acceptance(1, 10);
  accepted.accepted_at = old;
  accepted.jobs.resize(1);
  ASSERT_TRUE(
      store->Apply(std::vector<storage::Write>{accepted, Measured(1, old), Acceptance(2, 10)}));
  const auto reader = store->OpenReader().value();
  bool is_copied = false;
  Retention retention(*store, clock, {.batches = std::chrono::days(40), .may_delete_batches = [&] {
                                        return is_copied;
                                      }});
  for (int step = 0; step < 20; ++step) ASSERT_TRUE(retention.Step());
  EXPECT_TRUE(reader->FindBatch({1}).value());
  is_copied = true;
  for (int step = 0; step < 20; ++step) ASSERT_TRUE(retention.Step());
  EXPECT_FALSE(reader->FindBatch({1}).value());
}

TEST_F(StorageThreadTest, APassEndsWhenNoBatchMayBeDeletedAnyMore) {
  constexpr std::uint64_t kBatches = 1'500;  // several steps
  store = storage::SqliteStore::Open(dir.path() / "test.db").value();
  const WallTime old = clock.WallNow() - std::chrono::days(50);
  std::vector<storage::Write> writes;
  for (std::uint64_t batch = 1; batch <= kBatches; ++batch) {
    storage::JobsAccepted accepted = Acceptance(batch, 10);
    accepted.accepted_at = old;
    writes.emplace_back(std::move(accepted));
    writes.emplace_back(Measured(batch, old));
  }
  writes.emplace_back(Acceptance(kBatches + 1, 10));
  ASSERT_TRUE(store->Apply(writes));
  const auto reader = store->OpenReader().value();
  bool is_copied = true;
  Retention retention(*store, clock, {.batches = std::chrono::days(40), .may_delete_batches = [&] {
                                        return is_copied;
                                      }});
  ASSERT_TRUE(retention.Step());
  EXPECT_FALSE(reader->FindBatch({1}).value());
  is_copied = false;
  for (int step = 0; step < 20; ++step) ASSERT_TRUE(retention.Step());
  EXPECT_TRUE(reader->FindBatch({kBatches}).value());
  is_copied = true;
  for (int step = 0; step < 20; ++step) ASSERT_TRUE(retention.Step());
  EXPECT_FALSE(reader->FindBatch({kBatches}).value());
}

// Overwrites the page of the file that contains `bytes`.
void DamagePageWith(const std::filesystem::path& file, std::string_view bytes) {
  constexpr std::size_t kPage = 4096;
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t at = content.find(bytes);
  ASSERT_NE(at, std::string::npos);
  stream.clear();
  stream.seekp(static_cast<std::streamoff>(at / kPage * kPage));
  stream << std::string(kPage, '\xff');
}

// A page that cannot be read ends the pass over samples, and batches are pruned all the same.
TEST_F(StorageThreadTest, DamageEndsOnePassAndNotTheOther) {
  constexpr std::uint32_t kResults = 300;  // several pages
  const std::filesystem::path file = dir.path() / "test.db";
  const storage::StoreOptions in_runs{.run_entries = 100};  // so a start reads no old results
  const WallTime old = clock.WallNow() - std::chrono::days(50);
  const auto tree_of = [](std::uint32_t i) {
    SubjectKey tree;
    tree.bytes.fill(static_cast<std::uint8_t>(1 + i % 251));
    tree.bytes[0] = static_cast<std::uint8_t>(i / 251);
    return tree;
  };
  store = storage::SqliteStore::Open(file, in_runs).value();
  storage::JobsAccepted accepted = Acceptance(1, 10);
  accepted.jobs.resize(kResults, accepted.jobs.front());
  accepted.accepted_at = old;
  std::vector<storage::Write> writes = {accepted, Acceptance(2, 10)};
  for (std::uint32_t i = 0; i < kResults; ++i) {
    storage::JobFinished finished = Measured(1, old);
    finished.outcome.job.index = i;
    finished.outcome.sequence = i + 1;
    finished.outcome.evaluation.subject = tree_of(i);
    writes.emplace_back(std::move(finished));
  }
  ASSERT_TRUE(store->Apply(writes));
  ASSERT_TRUE(store->Apply(std::vector<storage::Write>{Acceptance(3, 10)}));  // seals the runs
  store.reset();
  const auto first = tree_of(0).bytes;
  DamagePageWith(file, std::string_view(reinterpret_cast<const char*>(first.data()), first.size()));

  auto opened = storage::SqliteStore::Open(file, in_runs);
  ASSERT_TRUE(opened) << opened.error().message;
  store = *std::move(opened);
  const Keep keep{.samples = std::chrono::days(30), .batches = std::chrono::days(40)};
  Retention retention(*store, clock, keep);
  const Status thinned = retention.Step();
  ASSERT_FALSE(thinned);
  EXPECT_EQ(thinned.error().kind, ErrorKind::kCorrupt);
  const auto reader = storage::SqliteReader::Open(file).value();
  for (int step = 0; step < 100 && reader->FindBatch({1}).value(); ++step) {
    ASSERT_TRUE(retention.Step());
  }
  EXPECT_FALSE(reader->FindBatch({1}).value());
  EXPECT_TRUE(reader->FindBatch({2}).value());
}

TEST_F(StorageThreadTest, WithoutRoomItRefusesWhatMayBeAndKeepsTheRest) {
  Open(1 << 20);
  Token token = 0;
  bool full = false;
  while (!full && token < 100) {  // until a write of this size no longer fits
    ++token;
    thread->Write(ToPersist(token, Acceptance(token, 60'000), WhenFull::kRefuse));
    const Event event = Events(1).at(0);
    if (const auto* refused = std::get_if<PersistRefused>(&event)) {
      EXPECT_EQ(refused->failure.code, FailureCode::kStorageFull);
      full = true;
    }
  }
  ASSERT_TRUE(full);
  // A write that is too large and must not be refused waits, while others are still refused.
  const Token kept = ++token;
  thread->Write(ToPersist(kept, Acceptance(token, 60'000), WhenFull::kRetry));
  const Token other = ++token;
  thread->Write(ToPersist(other, Acceptance(token, 60'000), WhenFull::kRefuse));
  const Event event = Events(1).at(0);
  ASSERT_TRUE(std::holds_alternative<PersistRefused>(event));
  EXPECT_EQ(std::get<PersistRefused>(event).token, other);
  EXPECT_EQ(thread->trouble(), ErrorKind::kFull);
  EXPECT_FALSE(thread->fatal());
}

// For each disk fault at each operation: nothing is reported durable that is not on disk, writes
// that may be refused are refused with a code, the others are kept, and the thread recovers by
// itself.
void ExpectToOutlast(loopfleet::DiskFault fault) {
  using loopfleet::CrashVfs;
  std::uint64_t operations = 1;
  for (std::uint64_t at = 1; at <= operations; ++at) {
    SCOPED_TRACE(fmt::format("fault at operation {} of {}", at, operations));
    PrivateDir dir;
    SystemClock clock;
    monitoring::Registry registry;
    monitoring::CoordinatorMetrics metrics{registry, AllLabels()};
    wire::Wakeup wakeup;
    CrashVfs disk;
    auto store = storage::SqliteStore::Open(dir.path() / "test.db");
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->Apply(std::vector<storage::Write>{Acceptance(1, 10)}));
    const std::uint64_t before = disk.operations();
    disk.FailAt(before + at, fault, CrashVfs::Lasting::kUntilMended);
    std::uint64_t accepted = 0;
    {
      StorageThread thread(**store, metrics, clock, wakeup);
      const auto next = [&] {
        std::vector<Event> events;
        Await("storage", [&] {
          events = thread.TakeEvents();
          return !events.empty() || thread.fatal() || thread.trouble().has_value();
        });
        EXPECT_FALSE(thread.fatal()) << thread.fatal()->message;
        return events;
      };
      thread.Write(ToPersist(1, Acceptance(2, 10), WhenFull::kRefuse));
      std::vector<Event> events = next();
      while (events.empty()) events = next();  // refusals follow shortly after the trouble
      if (const auto* refused = std::get_if<PersistRefused>(&events.at(0))) {
        EXPECT_EQ(refused->failure.code, FailureCode::kStorageFull);
      } else {
        ++accepted;
      }
      thread.Write(ToPersist(2, Failed(1), WhenFull::kRetry));  // a running worker's report
      if (next().empty()) disk.Mend();
      Await("the report", [&] { return !thread.trouble().has_value(); });
      disk.Mend();
      thread.Write(ToPersist(3, Acceptance(3, 10), WhenFull::kRetry));
      Await("what comes after", [&] {
        for (const Event& event : thread.TakeEvents()) {
          const auto* persisted = std::get_if<Persisted>(&event);
          if (persisted != nullptr && persisted->tokens.back() == 3) return true;
        }
        return false;
      });
      EXPECT_FALSE(thread.fatal());
    }
    operations = std::max(operations, disk.operations() - before);
    const auto reader = storage::SqliteReader::Open(dir.path() / "test.db");
    ASSERT_TRUE(reader);
    EXPECT_EQ((*reader)->FindBatch({2})->has_value(), accepted == 1);
    EXPECT_EQ((*reader)->FindBatch({1}).value()->finished, 1u);
    EXPECT_TRUE((*reader)->FindBatch({3})->has_value());
    if (at >= operations) break;
  }
  EXPECT_GT(operations, 20u);
}

TEST_F(StorageThreadTest, ADiskThatFillsAtEachOperation) {
  ExpectToOutlast(loopfleet::DiskFault::kFull);
}
TEST_F(StorageThreadTest, ADiskThatFailsAtEachOperation) {
  ExpectToOutlast(loopfleet::DiskFault::kIoError);
}

// A failing disk must not be reported as full: the operator would delete files in vain.
TEST_F(StorageThreadTest, WhatIsWrongIsSaidAsItIs) {
  using loopfleet::CrashVfs;
  for (const auto& [fault, kind, part] :
       {std::tuple(DiskFault::kFull, ErrorKind::kFull, "no room"),
        std::tuple(DiskFault::kIoError, ErrorKind::kSystem, "cannot be written to")}) {
    PrivateDir fresh;
    CrashVfs disk;
    auto on_it = storage::SqliteStore::Open(fresh.path() / "test.db").value();
    disk.FailAt(disk.operations() + 1, fault, CrashVfs::Lasting::kUntilMended);
    StorageThread writer(*on_it, metrics, clock, wakeup);
    writer.Write(ToPersist(1, Acceptance(1, 10), WhenFull::kRetry));
    Await("the trouble", [&] { return writer.trouble().has_value(); });
    EXPECT_EQ(writer.trouble(), kind);
    EXPECT_FALSE(writer.fatal());
    const wire::FleetHealth health = HealthOf({.storage_trouble = writer.trouble()});
    EXPECT_NE(health.sentence.find(part), std::string::npos) << health.sentence;
    disk.Mend();
    Await("the end of it", [&] { return !writer.trouble().has_value(); });
  }
}

TEST_F(StorageThreadTest, WhatContradictsTheDatabaseIsFatal) {
  Open(0);
  thread->Write(ToPersist(1, Failed(7), WhenFull::kRetry));  // of a job never accepted
  Await("the end", [&] { return thread->fatal().has_value(); });
  EXPECT_EQ(thread->fatal()->kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace loopfleet::coordinator
