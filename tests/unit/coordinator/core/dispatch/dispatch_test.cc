// Which waiting jobs are offered to which idle workers, and at what cost.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

constexpr std::uint8_t kWorkers = 40;
constexpr std::uint8_t kDemands = 50;

PeerId Peer(std::uint8_t worker) { return fmt::format("w{}", worker); }

// Client "c", and workers "w0", "w1", ... that idle, each on a host of its own.
struct IdleFleet : Harness {
  IdleFleet() {
    ClientHello("c", 1);
    for (std::uint8_t i = 0; i < kWorkers; ++i) {
      WorkerHello(Peer(i), i + 1, {.labels = {"cpu"}, .host = fmt::format("host {}", i)});
    }
  }
  void Queue(std::vector<JobSetup> jobs) {
    Submit("c", std::move(jobs));
    Write();
  }
  void QueueUnservable() {
    std::vector<JobSetup> jobs;
    for (std::uint8_t i = 0; i < kDemands; ++i) {
      jobs.push_back({.tree = i, .labels = {"cpu", fmt::format("label {}", i)}});
    }
    Queue(std::move(jobs));
  }
  std::uint64_t matches() const { return core->state().ready.matches(); }
};

TEST(Dispatch, ADemandIsComparedWithAShapeOfWorkerOnce) {
  IdleFleet h;
  const std::uint64_t none = h.matches();
  h.QueueUnservable();
  EXPECT_EQ(h.matches() - none, kDemands);  // all workers have one shape
  const std::uint64_t before = h.matches();
  h.QueueUnservable();
  for (std::uint8_t i = 0; i < kWorkers; ++i) h.Heartbeat(Peer(i));
  EXPECT_EQ(h.matches(), before);
}

TEST(Dispatch, AJobBesideOthersThatNobodyCanRunCostsFewComparisons) {
  IdleFleet h;
  h.QueueUnservable();
  const std::uint64_t before = h.matches();
  for (std::uint8_t i = 0; i < kWorkers; ++i) {
    h.Queue({{.tree = static_cast<std::uint8_t>(100 + i)}});
    const auto leases = h.TakeLeases(Peer(i));  // the one that idles longest
    ASSERT_EQ(leases.size(), 1U);
    h.Report(Peer(i), leases[0]);
    h.Write();
  }
  EXPECT_LE(h.matches() - before, kWorkers);
}

TEST(Dispatch, ANewDemandIsOfferedToThoseThatFoundNothing) {
  IdleFleet h;
  h.WorkerHello("x", 200, {.labels = {"x"}});
  h.QueueUnservable();
  for (std::uint8_t tree = 100; tree < 103; ++tree) {
    h.Queue({{.tree = tree, .labels = {"x"}}, {.tree = static_cast<std::uint8_t>(tree + 50)}});
    const auto leases = h.TakeLeases("x");
    ASSERT_EQ(leases.size(), 1U);
    EXPECT_EQ(leases[0].spec.labels, std::vector<std::string>{"x"});
    h.Report("x", leases[0]);
    h.Write();
  }
}

// Workers may hold two jobs, so both are candidates.
TEST(Dispatch, AWorkerWithoutAJobComesBeforeABusyOne) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50, {.credit = 2});
  h.WorkerHello("x", 51, {.credit = 2});
  for (const std::uint8_t tree : {1, 2}) {
    h.Submit("c", {{.tree = tree}});
    h.Write();
  }
  EXPECT_EQ(h.TakeLeases("w").size(), 1U);
  h.Report("x", h.TakeLeases("x").at(0));
  h.Submit("c", {{.tree = 3}});
  h.Write();
  EXPECT_TRUE(h.TakeLeases("w").empty());
  EXPECT_EQ(h.TakeLeases("x").size(), 1U);
}

TEST(Dispatch, AHostIsAskedForAmongWorkersOfOneShape) {
  IdleFleet h;
  h.Queue({{.tree = 1, .labels = {"host=host 7"}}, {.tree = 2, .labels = {"host=host 3"}}});
  EXPECT_EQ(h.TakeLeases(Peer(7)).size(), 1U);
  EXPECT_EQ(h.TakeLeases(Peer(3)).size(), 1U);
}

TEST(Dispatch, AWorkerThatComesBackWithOtherLabelsIsOfferedWhatWaited) {
  IdleFleet h;
  h.QueueUnservable();
  h.WorkerHello(Peer(5), 6, {.labels = {"cpu", "label 8"}, .host = "host 5"});
  EXPECT_EQ(h.TakeLeases(Peer(5)).size(), 1U);
}

}  // namespace
}  // namespace loopfleet::coordinator
