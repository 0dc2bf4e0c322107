// What was acknowledged survives any number of kill -9.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>

#include "common/base/random.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr int kKills = 20;

using CrashTest = ScratchDatabase;

// Writes batches of three jobs, two of them finished, and sends each batch's number once it is
// durable.
[[noreturn]] void WriteUntilKilled(const std::filesystem::path& path, int acknowledge) {
  auto store = SqliteStore::Open(path);
  if (!store) ::_exit(1);
  std::uint64_t next = (*store)->Recover().value().next_batch;
  while (true) {
    const std::vector<Write> group = {
        SomeBatch(next, {PlainSpec(2), PlainSpec(3), PlainSpec(4)}),
        JobFinished{SomeOutcome({.batch = next, .index = 2, .sequence = 1}, PlainSpec(4),
                                SomeMeasurement(static_cast<std::uint8_t>(next)))},
        JobFinished{SomeOutcome({.batch = next, .index = 0, .sequence = 2}, PlainSpec(2),
                                BareFailure(FailureCode::kExpired))}};
    if (!(*store)->Apply(group)) ::_exit(2);
    if (::write(acknowledge, &next, sizeof next) != sizeof next) ::_exit(3);
    ++next;
  }
}

TEST_F(CrashTest, WhatWasAcknowledgedIsThere) {
  SplitMix64 random(2);
  std::uint64_t acknowledged = 0;
  for (int round = 0; round < kKills; ++round) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) WriteUntilKilled(path(), pipe[1]);
    ::close(pipe[1]);
    const std::uint64_t enough = acknowledged + 1 + random.Below(15);
    std::uint64_t batch = 0;
    while (batch < enough && ::read(pipe[0], &batch, sizeof batch) == sizeof batch) {
    }
    ASSERT_EQ(batch, enough) << "the child ended by itself";
    ::kill(child, SIGKILL);
    while (::read(pipe[0], &batch, sizeof batch) == sizeof batch) {
    }  // what it acknowledged before it died
    ::close(pipe[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    acknowledged = batch;

    const auto store = OpenStore();
    const auto reader = OpenReader();
    const Recovery recovery = store->Recover().value();
    const std::uint64_t stored = recovery.next_batch - 1;
    // One more may be durable that the child had no time to acknowledge.
    ASSERT_GE(stored, acknowledged);
    ASSERT_LE(stored, acknowledged + 1);
    ASSERT_EQ(recovery.jobs.size(), stored);
    for (std::uint64_t id = 1; id <= stored; ++id) {
      const auto found = reader->FindBatch({id}).value();
      ASSERT_TRUE(found) << "batch " << id;
      ASSERT_EQ(found->finished, 2u);
      ASSERT_EQ(found->failed, 1u);
      ASSERT_EQ(reader->ReadOutcomes({id}, 0, {.max_rows = 10}).value().size(), 2u);
    }
    ASSERT_EQ(NumberByHand("SELECT count(*) FROM outcomes"), static_cast<std::int64_t>(2 * stored));
    ASSERT_EQ(NumberByHand("SELECT count(*) FROM pragma_integrity_check "
                           "WHERE integrity_check <> 'ok'"),
              0);
    acknowledged = stored;
  }
}

}  // namespace
}  // namespace loopfleet::storage
