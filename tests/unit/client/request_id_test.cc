#include "client/request_id.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

namespace loopfleet::client {
namespace {

TEST(RequestId, NoTwoAreEqual) {
  std::set<Uuid> ids;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(ids.insert(NewRequestId()).second);
}

TEST(RequestId, LaterOnesComeLater) {
  Uuid last = NewRequestId();
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(10));  // the clock has moved
    const Uuid next = NewRequestId();
    EXPECT_LT(last, next);
    last = next;
  }
}

}  // namespace
}  // namespace loopfleet::client
