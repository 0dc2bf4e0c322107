#include "common/base/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace loopfleet {
namespace {

TEST(BoundedQueue, GivesValuesInOrder) {
  BoundedQueue<int> queue(3);
  EXPECT_TRUE(queue.Push(1));
  EXPECT_TRUE(queue.Push(2));
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.TryPop(), 2);
  EXPECT_EQ(queue.TryPop(), std::nullopt);
}

TEST(BoundedQueue, TryPushLeavesTheValueWhenFullOrClosed) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  auto first = std::make_unique<int>(1);
  auto second = std::make_unique<int>(2);
  EXPECT_TRUE(queue.TryPush(first));
  EXPECT_EQ(first, nullptr);
  EXPECT_FALSE(queue.TryPush(second));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(**queue.TryPop(), 1);
  queue.Close();
  EXPECT_FALSE(queue.TryPush(second));
  EXPECT_NE(second, nullptr);
}

TEST(BoundedQueue, PopAllTakesEverythingAndMakesRoom) {
  BoundedQueue<int> queue(2);
  queue.Push(1);
  queue.Push(2);
  std::jthread blocked([&] { EXPECT_TRUE(queue.Push(3)); });
  std::vector<int> taken;
  while (taken.size() < 3) {
    for (const int value : queue.PopAll()) taken.push_back(value);
  }
  EXPECT_EQ(taken, (std::vector<int>{1, 2, 3}));
}

TEST(BoundedQueue, CloseWakesWaitersAndKeepsWhatIsQueued) {
  BoundedQueue<int> full(1);
  full.Push(7);
  std::jthread pusher([&] { EXPECT_FALSE(full.Push(8)); });
  BoundedQueue<int> empty(1);
  std::jthread popper([&] { EXPECT_EQ(empty.Pop(), std::nullopt); });
  std::jthread all_popper([&] { EXPECT_TRUE(empty.PopAll().empty()); });
  // They have to return whether they already wait or call later.
  full.Close();
  empty.Close();
  pusher.join();
  popper.join();
  all_popper.join();
  EXPECT_EQ(full.Pop(), 7);
  EXPECT_EQ(full.Pop(), std::nullopt);
  EXPECT_FALSE(full.Push(9));
}

TEST(BoundedQueue, NothingIsLostOrDoubledBetweenManyThreads) {
  constexpr int kProducers = 4;
  constexpr int kEach = 5000;
  BoundedQueue<int> queue(16);
  std::atomic<bool> over = false;
  std::vector<std::vector<int>> taken(3);
  {
    std::vector<std::jthread> consumers;
    for (std::size_t c = 0; c < taken.size(); ++c) {
      consumers.emplace_back([&queue, &mine = taken[c], c] {
        if (c == 0) {
          for (auto values = queue.PopAll(); !values.empty(); values = queue.PopAll()) {
            mine.insert(mine.end(), values.begin(), values.end());
          }
        } else {
          while (const auto value = queue.Pop()) mine.push_back(*value);
        }
      });
    }
    std::jthread observer([&] {
      while (!over) EXPECT_LE(queue.size(), 16u);
    });
    {
      std::vector<std::jthread> producers;
      for (int p = 0; p < kProducers; ++p) {
        producers.emplace_back([&queue, p] {
          for (int i = 0; i < kEach; ++i) EXPECT_TRUE(queue.Push(p * kEach + i));
        });
      }
    }
    queue.Close();
    over = true;
  }
  std::set<int> seen;
  for (const auto& mine : taken) {
    std::vector<int> last(kProducers, -1);
    for (const int value : mine) {
      EXPECT_TRUE(seen.insert(value).second) << value << " came twice";
      EXPECT_LT(last[static_cast<std::size_t>(value / kEach)], value) << "out of order";
      last[static_cast<std::size_t>(value / kEach)] = value;
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kProducers * kEach));
}

}  // namespace
}  // namespace loopfleet
