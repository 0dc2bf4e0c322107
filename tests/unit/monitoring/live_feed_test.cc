#include "monitoring/live_feed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace loopfleet::monitoring {
namespace {

using namespace std::chrono_literals;

TEST(LiveFeed, GivesTheNewestAtOnceAndThenEachNewerOne) {
  LiveFeed feed({});
  feed.Publish("1");
  feed.Publish("2");
  const auto watcher = feed.Watch();
  ASSERT_NE(watcher, nullptr);
  EXPECT_EQ(*watcher->Next(), "id: 2\ndata: 2\n\n");
  feed.Publish("3");
  EXPECT_EQ(*watcher->Next(), "id: 3\ndata: 3\n\n");
}

TEST(LiveFeed, WhoIsSlowMissesValuesButNotTheNewest) {
  LiveFeed feed({});
  const auto watcher = feed.Watch();
  for (int i = 1; i <= 1000; ++i) feed.Publish(std::to_string(i));
  EXPECT_EQ(*watcher->Next(), "id: 1000\ndata: 1000\n\n");
}

TEST(LiveFeed, MakesTheBytesOnceForAll) {
  LiveFeed feed({});
  const auto one = feed.Watch();
  const auto other = feed.Watch();
  feed.Publish("x");
  EXPECT_EQ(one->Next().get(), other->Next().get());
}

TEST(LiveFeed, HasRoomForSoManyAndWhoLeavesMakesRoom) {
  LiveFeed feed({.max_watchers = 2});
  auto one = feed.Watch();
  const auto two = feed.Watch();
  EXPECT_EQ(feed.Watch(), nullptr);
  EXPECT_EQ(feed.watchers(), 2U);
  one.reset();
  EXPECT_EQ(feed.watchers(), 1U);
  EXPECT_NE(feed.Watch(), nullptr);
}

TEST(LiveFeed, SaysThatItIsStillThere) {
  LiveFeed feed({.keep_alive = 1ms});
  const auto watcher = feed.Watch();
  EXPECT_TRUE(watcher->Next()->starts_with(":"));  // a comment, not a value
}

TEST(LiveFeed, ClosingEndsEveryStreamAndLetsNobodyIn) {
  LiveFeed feed({.keep_alive = 10min});
  std::atomic<int> ended = 0;
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<ReplyStream>> watchers;
  for (int i = 0; i < 4; ++i) watchers.push_back(feed.Watch());
  for (const auto& watcher : watchers) {
    threads.emplace_back([&ended, &watcher] {
      if (watcher->Next() == nullptr) ++ended;
    });
  }
  feed.Close();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 4);
  EXPECT_EQ(feed.Watch(), nullptr);
}

}  // namespace
}  // namespace loopfleet::monitoring
