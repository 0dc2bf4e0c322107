#include "coordinator/core/tables/ready_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace loopfleet::coordinator {
namespace {

JobId Id(std::uint32_t index) { return {.batch = BatchId{1}, .index = index}; }
Uuid Client(std::uint8_t name) { return {{name}}; }
const Demand kPlain{};
const Supply kWorker{.worker = Uuid{{200}}, .shape = 1, .max_threads = 8};

ReadyQueue::Entering By(std::uint8_t client, std::uint32_t job, std::int32_t priority = 0) {
  return {.job = Id(job), .client = Client(client), .priority = priority};
}

std::vector<std::uint32_t> PopAll(ReadyQueue& queue, const Supply& supply = kWorker) {
  std::vector<std::uint32_t> order;
  while (const auto job = queue.PopFor(supply)) {
    queue.CheckInvariants();
    order.push_back(job->index);
  }
  return order;
}

TEST(ReadyQueue, HigherPriorityFirstThenFirstAccepted) {
  ReadyQueue queue;
  queue.PushBack(By(1, 0), kPlain);
  queue.PushBack(By(1, 1, -5), kPlain);
  queue.PushBack(By(1, 2, 7), kPlain);
  queue.PushBack(By(1, 3), kPlain);
  queue.PushBack(By(1, 4, 7), kPlain);
  queue.PushFront(By(1, 5), kPlain);  // was popped before
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{2, 4, 5, 0, 3, 1}));
}

TEST(ReadyQueue, PrioritiesCountAcrossOneClientsDemands) {
  ReadyQueue queue;
  queue.PushBack(By(1, 0), kPlain);
  queue.PushBack(By(1, 1, 3), {.threads = 4});
  queue.PushBack(By(1, 2), {.placement = Placement::kAny});
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{1, 0, 2}));
}

TEST(ReadyQueue, ClientsTakeTurnsWhateverTheyHaveQueuedAndSayOfPriority) {
  ReadyQueue queue;
  for (std::uint32_t i = 0; i < 6; ++i) queue.PushBack(By(1, i, 100), kPlain);
  EXPECT_EQ(queue.PopFor(kWorker), Id(0));
  queue.PushBack(By(2, 10, -100), kPlain);
  queue.PushBack(By(2, 11, -100), kPlain);
  queue.PushBack(By(3, 20), kPlain);
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{10, 20, 1, 11, 2, 3, 4, 5}));
}

TEST(ReadyQueue, WhoComesOneJobAtATimeTakesNoMoreTurns) {
  ReadyQueue queue;
  for (std::uint32_t i = 0; i < 100; ++i) queue.PushBack(By(1, i), kPlain);
  std::uint32_t own = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    // The client queues its next job before its last one is popped.
    if (i == 0 || own > 0) queue.PushBack(By(2, 1000 + i), kPlain);
    const auto job = queue.PopFor(kWorker);
    own += job->index >= 1000 ? 1 : 0;
  }
  EXPECT_GE(own, 45U);
  EXPECT_LE(own, 55U);
}

TEST(ReadyQueue, ClientsOfLongJobsHaveFewerTurns) {
  ReadyQueue queue;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    queue.PushBack(By(1, i), kPlain);
    queue.PushBack(By(2, 1000 + i), kPlain);
  }
  std::map<bool, std::uint32_t> turns;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const bool is_long = queue.PopFor(kWorker)->index >= 1000;
    ++turns[is_long];
    queue.Took(Client(is_long ? 2 : 1),
               is_long ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10));
  }
  // Equal time would be a tenth of the turns; the estimate of a job's time is a mean over both.
  EXPECT_LT(turns[true], 300U);
  EXPECT_GT(turns[true], 50U);
}

TEST(ReadyQueue, ATurnElsewhereDoesNotCountHere) {
  ReadyQueue queue;
  const Supply cuda{.worker = Uuid{{201}}, .shape = 2, .device = DeviceKind::kCuda};
  for (std::uint32_t i = 0; i < 50; ++i) {
    queue.PushBack(By(1, i), kPlain);
    queue.PushBack(By(2, 100 + i), {.placement = Placement::kCuda});
  }
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(queue.PopFor(cuda));
  queue.PushBack(By(2, 1000), kPlain);
  queue.PushBack(By(2, 1001), kPlain);
  std::vector<std::uint32_t> first;
  for (int i = 0; i < 4; ++i) first.push_back(queue.PopFor(kWorker)->index);
  EXPECT_EQ(std::ranges::count_if(first, [](std::uint32_t job) { return job >= 1000; }), 2);
}

TEST(ReadyQueue, JobsBoundToAWorkerAreForItAlone) {
  ReadyQueue queue;
  queue.PushBack(By(1, 0), {.only = Uuid{{201}}});
  const auto place = queue.PushBack(By(1, 1), kPlain);
  queue.Move(place, {.only = kWorker.worker});
  queue.CheckInvariants();
  EXPECT_EQ(queue.demands(), (ReadyQueue::DemandCounts{.open = 0, .bound = 2}));
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(PopAll(queue, {.worker = Uuid{{201}}, .shape = 2}), (std::vector<std::uint32_t>{0}));
}

TEST(ReadyQueue, AMovedJobKeepsItsTurn) {
  ReadyQueue queue;
  const auto first = queue.PushBack(By(1, 0), {.only = kWorker.worker});
  queue.PushBack(By(1, 1), kPlain);
  queue.Move(first, kPlain);
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{0, 1}));
}

TEST(ReadyQueue, DemandsThatComeAndGoWhileAWorkerIsAwayAreNotOfferedToIt) {
  for (const std::uint32_t gone : {1U, 10U, 300U}) {
    ReadyQueue queue;
    queue.PushBack(By(1, 1000), {.threads = 8});
    std::vector<ReadyQueue::Place> places;
    for (std::uint32_t i = 0; i < gone; ++i) {
      places.push_back(queue.PushBack(By(1, i), {.threads = 2, .labels = {"host=x"}}));
      places.push_back(
          queue.PushBack(By(2, 500 + i), {.placement = Placement::kAny, .threads = i}));
      if (i % 2 == 0) {
        EXPECT_EQ(queue.PopFor(kWorker, [](const Demand&) { return false; }), std::nullopt);
      }
    }
    for (const auto& place : places) queue.Remove(place);
    EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{1000}));
  }
}

TEST(ReadyQueue, DemandsThatCameAndWentAreNotOffered) {
  ReadyQueue queue;
  const auto none = [](const Demand&) { return false; };
  queue.PushBack(By(1, 1000), {.threads = 8});
  for (std::uint32_t i = 0; i < 100; ++i) {
    const auto known = queue.PushBack(By(1, i), {.threads = 2});
    EXPECT_FALSE(queue.PopFor(kWorker, none));
    const auto unknown = queue.PushBack(By(2, 500 + i), {.threads = 3});
    queue.Remove(known);
    queue.Remove(unknown);
  }
  EXPECT_EQ(queue.matches(), 101U);
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{1000}));
}

TEST(ReadyQueue, SaysWhatIsBeforeAJob) {
  ReadyQueue queue;
  std::vector<ReadyQueue::Place> places;
  for (std::uint32_t i = 0; i < 25'000; ++i) places.push_back(queue.PushBack(By(1, i), kPlain));
  for (std::uint32_t i = 0; i < 10; ++i) queue.PushBack(By(2, 100'000 + i), kPlain);
  EXPECT_EQ(queue.PositionOf(places.front()).own, 0U);
  EXPECT_EQ(queue.PositionOf(places[3]).own, 3U);
  EXPECT_EQ(queue.PositionOf(places[3]).others, 3U);
  EXPECT_EQ(queue.PositionOf(places[30]).others, 10U);
  EXPECT_EQ(queue.PositionOf(places[30]).other_clients, 1U);
  EXPECT_EQ(queue.PositionOf(places.back()).own, 24'999U);
  const auto middle = queue.PositionOf(places[12'000]);
  EXPECT_FALSE(middle.own_is_exact);
  EXPECT_LE(middle.own, 12'000U);
}

// With random demands and workers, a pop succeeds exactly if some queued job fits the worker, and
// returns a fitting job.
TEST(ReadyQueue, NothingIsLostAndEverybodyIsServedUnderRandomUse) {
  std::mt19937 random(7);
  ReadyQueue queue;
  std::map<JobId, std::pair<ReadyQueue::Place, Demand>> queued;
  std::vector<Supply> workers;
  // The last two differ in their host only.
  const std::vector<Labels> labels = {{}, {"host=x"}, {}, {"a", "host=x"}, {"a", "host=y"}};
  std::map<Shape, std::uint64_t> shapes;
  for (std::uint8_t i = 0; i < 5; ++i) {
    Supply worker{.worker = Uuid{{static_cast<std::uint8_t>(100 + i)}},
                  .device = i == 2 ? DeviceKind::kCuda : DeviceKind::kCpu,
                  .max_threads = std::min(i + 1U, 4U),
                  .labels = &labels[i]};
    worker.shape = shapes.try_emplace(ShapeOf(worker), shapes.size()).first->second;
    workers.push_back(worker);
  }
  ASSERT_EQ(shapes.size(), 4U);
  for (std::uint32_t step = 0; step < 20'000; ++step) {
    const auto die = random() % 10;
    if (die < 4) {
      Demand demand{.placement = static_cast<Placement>(random() % 3),
                    .threads = static_cast<std::uint32_t>(random() % 3 + 1)};
      if (random() % 4 == 0) demand.labels = {"a"};
      if (random() % 4 == 0) demand.labels.emplace_back(random() % 2 == 0 ? "host=x" : "host=y");
      if (random() % 5 == 0) demand.only = workers[random() % 5].worker;
      const auto entering = By(static_cast<std::uint8_t>(random() % 5), step,
                               static_cast<std::int32_t>(random() % 3));
      const auto place =
          random() % 5 == 0 ? queue.PushFront(entering, demand) : queue.PushBack(entering, demand);
      queued.emplace(Id(step), std::pair(place, demand));
    } else if (die < 8) {
      const Supply& worker = workers[random() % 5];
      const auto job = queue.PopFor(worker);
      const bool serves_any = std::ranges::any_of(
          queued, [&](const auto& each) { return Serves(worker, each.second.second); });
      ASSERT_EQ(job.has_value(), serves_any);
      if (!job) continue;
      ASSERT_TRUE(Serves(worker, queued.at(*job).second));
      queued.erase(*job);
    } else if (!queued.empty()) {
      const auto any = std::next(queued.begin(), static_cast<int>(random() % queued.size()));
      if (die == 8) {
        queue.Remove(any->second.first);
        queued.erase(any);
      } else {
        any->second.second.threads = static_cast<std::uint32_t>(random() % 3 + 1);
        any->second.first = queue.Move(any->second.first, any->second.second);
      }
    }
    ASSERT_EQ(queue.size(), queued.size());
    if (step % 16 == 0) queue.CheckInvariants();
  }
}

}  // namespace
}  // namespace loopfleet::coordinator
