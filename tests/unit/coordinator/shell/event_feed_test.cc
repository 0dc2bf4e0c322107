#include "coordinator/shell/event_feed.h"

#include <gtest/gtest.h>

#include <string>

#include "common/wire/bounds.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::coordinator {
namespace {

class HandClock final : public Clock {
 public:
  Instant Now() const override { return {}; }
  WallTime WallNow() const override { return now; }
  WallTime now{std::chrono::seconds(1'700'000'000)};
};

std::string Kinds(const std::vector<wire::FleetEvent>& events) {
  std::string text;
  for (const auto& event : events) text += std::to_string(event.sequence) + event.kind + " ";
  return text;
}

TEST(EventFeed, NumbersAndDatesWhatHappened) {
  HandClock clock;
  EventFeed feed(clock);
  EXPECT_EQ(feed.last(), 0U);
  feed.Add({.kind = "a"});
  clock.now += std::chrono::seconds(5);
  feed.Add({.kind = "b", .batch = BatchId{7}});
  EXPECT_EQ(feed.last(), 2U);
  const auto all = feed.After(0, 10);
  EXPECT_EQ(Kinds(all), "1a 2b ");
  EXPECT_EQ(all[1].at - all[0].at, std::chrono::seconds(5));
  EXPECT_EQ(Kinds(feed.After(1, 10)), "2b ");
  EXPECT_EQ(Kinds(feed.After(0, 1)), "1a ");
  EXPECT_EQ(Kinds(feed.After(2, 10)), "");
  EXPECT_EQ(Kinds(feed.After(99, 10)), "");
  EXPECT_EQ(Kinds(feed.After(0, 0)), "");
}

TEST(EventFeed, AFloodOfBatchesDoesNotDrownWhatHappenedToWorkers) {
  HandClock clock;
  EventFeed feed(clock, {.max_batch_events = 3, .most_others = 2});
  feed.Add({.kind = "lost"});
  for (std::uint64_t i = 1; i <= 100; ++i) feed.Add({.kind = "batch", .batch = BatchId{i}});
  feed.Add({.kind = "joined"});
  EXPECT_EQ(Kinds(feed.After(0, 100)), "1lost 99batch 100batch 101batch 102joined ");
  feed.Add({.kind = "left"});
  EXPECT_EQ(Kinds(feed.After(0, 100)), "99batch 100batch 101batch 102joined 103left ");
}

TEST(EventFeed, WorkersOfOneKeyPushOutAtMostHalf) {
  HandClock clock;
  EventFeed feed(clock, {.most_others = 6});
  feed.Add({.kind = "started"});
  feed.Add({.kind = "joined", .subject = "good/a"});
  feed.Add({.kind = "joined", .subject = "bad-not/a"});
  for (int i = 0; i < 100; ++i) {
    feed.Add({.kind = i % 2 == 0 ? "joined" : "left", .subject = "bad/" + std::to_string(i)});
  }
  EXPECT_EQ(Kinds(feed.After(0, 100)), "1started 2joined 3joined 101left 102joined 103left ");
}

TEST(EventFeed, OfOneKeysRepetitionsTheLastIsKeptWithTheirNumber) {
  HandClock clock;
  EventFeed feed(clock);
  feed.AddToLast({.kind = "refused", .subject = "k/a", .count = 1});
  feed.AddToLast({.kind = "refused", .subject = "k/b", .count = 1});
  feed.Add({.kind = "batch", .batch = BatchId{7}});
  feed.AddToLast({.kind = "refused", .subject = "k/c", .count = 1});
  feed.AddToLast({.kind = "refused", .subject = "l/a", .count = 1});
  const auto events = feed.After(0, 10);
  EXPECT_EQ(Kinds(events), "3batch 4refused 5refused ");
  EXPECT_EQ(events[1].subject, "k/c");
  EXPECT_EQ(events[1].count, 3U);
  EXPECT_EQ(events[1].text, "3 times");
  EXPECT_EQ(events[2].count, 1U);
}

TEST(EventFeed, WhatItGivesFitsAMessage) {
  HandClock clock;
  EventFeed feed(clock);
  const std::string longest(wire::kMaxFactBytes, 'x');
  for (int i = 0; i < 1'000; ++i) {
    feed.Add({.kind = "k", .subject = longest, .text = longest});
    feed.Add({.kind = "b", .subject = longest, .batch = BatchId{1}, .text = longest});
  }
  wire::FleetInfo fleet;
  std::uint64_t last = 0;
  std::size_t seen = 0;
  for (;;) {  // page by page
    fleet.events = feed.After(last, wire::kMaxEventsPerList);
    if (fleet.events.empty()) break;
    seen += fleet.events.size();
    last = fleet.events.back().sequence;
    const std::string frame = wire::Encode(wire::CoordinatorReply{.message = fleet});
    ASSERT_LE(frame.size(), wire::kMaxMessageBytes);
    ASSERT_TRUE(wire::DecodeCoordinatorReply(frame).has_value());
  }
  EXPECT_EQ(seen, 2'000U);
}

}  // namespace
}  // namespace loopfleet::coordinator
