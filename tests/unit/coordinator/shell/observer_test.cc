#include "coordinator/shell/observer.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <string_view>

namespace loopfleet::coordinator {
namespace {

class SteppedClock final : public Clock {
 public:
  Instant Now() const override { return now; }
  WallTime WallNow() const override { return {}; }
  Instant now{std::chrono::hours(1)};
};

class ObserverTest : public testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
  }
  void TearDown() override { spdlog::set_default_logger(usual_); }

  void Observe(WorkerChange change, const std::string& name) {
    observer_.Observe(Observation{WorkerChanged{.change = change, .name = name}});
  }
  std::size_t Lines(std::string_view kind) const {
    std::size_t count = 0;
    std::istringstream lines(log_.str());
    for (std::string line; std::getline(lines, line);) count += line.contains(kind) ? 1 : 0;
    return count;
  }
  std::size_t Events(std::string_view kind) const {
    const wire::FleetInfo fleet = status_.Complete({}, {.max_events = 10'000});
    std::size_t count = 0;
    for (const wire::FleetEvent& event : fleet.events) count += event.kind == kind ? 1 : 0;
    return count;
  }

  const std::shared_ptr<spdlog::logger> usual_ = spdlog::default_logger();
  std::ostringstream log_;
  SteppedClock clock_;
  monitoring::Registry registry_;
  monitoring::CoordinatorMetrics metrics_{registry_, AllLabels()};
  FleetStatus status_{clock_, {.version = "1"}};
  Observer observer_{metrics_, status_, clock_};
};

TEST_F(ObserverTest, AFloodOfHellosIsALineASecondAndLeavesOtherEvents) {
  constexpr int kSeconds = 50;
  constexpr int kEach = 200;
  for (int i = 0; i < 100; ++i) Observe(WorkerChange::kLost, "good/" + std::to_string(i));
  EXPECT_EQ(Lines("worker.lost"), 100U) << "a fleet is logged worker by worker";
  for (int second = 0; second < kSeconds; ++second, clock_.now += std::chrono::seconds(1)) {
    for (int i = 0; i < kEach; ++i) {
      Observe(WorkerChange::kRefused, "bad/" + std::to_string(i));
      Observe(WorkerChange::kReattached, "bad/w");
    }
  }
  // A hundred at once, and then one a second.
  EXPECT_EQ(Lines("worker.refused worker=bad/"), 99U + kSeconds);
  EXPECT_EQ(Lines("worker.reattached worker=bad/w"), 99U + kSeconds);
  EXPECT_EQ(Lines("count=200"), 2U * (kSeconds - 2));
  EXPECT_EQ(Events("worker.lost"), 100U);
}

TEST_F(ObserverTest, RefusalsOfOneKeyAreOneEvent) {
  Observe(WorkerChange::kJoined, "bad/a");
  for (int i = 0; i < 5'000; ++i) Observe(WorkerChange::kRefused, "bad/" + std::to_string(i));
  Observe(WorkerChange::kRefused, "other/w");
  EXPECT_EQ(Events("worker.joined"), 1U);
  EXPECT_EQ(Events("worker.refused"), 2U);
}

}  // namespace
}  // namespace loopfleet::coordinator
