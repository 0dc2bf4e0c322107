#include "worker/timing/timing_message.h"

#include <gtest/gtest.h>

#include <limits>

namespace loopfleet::worker {
namespace {

Samples SomeSamples() {
  Samples samples{.end = SamplingEnd::kCut, .iterations = 12, .ns = {5.5, 6, 7}, .slowdown = 1.2};
  samples.flags = {0, kSampleContended, 0};
  samples.probe_cycles = 9'000;
  samples.clock_before_mhz = 3'000;
  samples.clock_after_mhz = 3'010;
  samples.spent_ns = 70'000;
  return samples;
}

TEST(TimingMessageTest, PolicyRoundTrips) {
  const SamplingPolicy policy{.min_samples = 1,
                              .most_samples = 2,
                              .min_repetition_ns = 3,
                              .precision = 0.5,
                              .least_timed_ns = 5,
                              .budget_ns = 6,
                              .patience_ns = 7,
                              .quiet_wait_ns = 18,
                              .give_up_after = 15,
                              .max_iterations = 8,
                              .max_samples = 9,
                              .iterations = 16,
                              .cache = CacheState::kCold,
                              .cut_above_ns = 10,
                              .reference_mhz = 11,
                              .quiet_cycles = 12,
                              .probe_steps = 13,
                              .evict_bytes = 14,
                              .threads = 17};
  EXPECT_EQ(DecodeBytes<SamplingPolicy>(EncodeBytes(policy)), policy);
}

TEST(TimingMessageTest, SamplesRoundTripAndTruncatedOnesDoNot) {
  const std::string bytes = EncodeBytes(SomeSamples());
  EXPECT_EQ(DecodeBytes<Samples>(bytes), SomeSamples());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeBytes<Samples>(std::string_view(bytes).substr(0, size))) << size;
  }
}

TEST(TimingMessageTest, SamplesThatCannotBeAreJunk) {
  const auto is_junk = [](auto change) {
    Samples samples = SomeSamples();
    change(samples);
    return !DecodeBytes<Samples>(EncodeBytes(samples));
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(is_junk([](Samples& s) { s.iterations = 0; }));
  EXPECT_TRUE(is_junk([](Samples& s) { s.ns[1] = 0; }));
  EXPECT_TRUE(is_junk([](Samples& s) { s.flags.pop_back(); }));
  EXPECT_TRUE(is_junk([](Samples& s) { s.ns[1] = kNan; }));
  EXPECT_TRUE(is_junk([](Samples& s) { s.flags[1] = 77; }));
  EXPECT_TRUE(is_junk([](Samples& s) { s.slowdown = 0.5; }));
  EXPECT_TRUE(is_junk([](Samples& s) { s.slowdown = kNan; }));
  EXPECT_TRUE(is_junk([](Samples& s) { s.clock_before_mhz = -1; }));
  EXPECT_TRUE(is_junk([](Samples& s) {  // cut by one sample
    s.flags[0] = kSamplePreempted;
    s.flags[1] = kSamplePreempted;
  }));
  EXPECT_FALSE(is_junk([](Samples& s) {
    s.flags[0] = kSamplePreempted;
    s.end = SamplingEnd::kDone;
  }));
  EXPECT_TRUE(is_junk([](Samples& s) {
    s.ns.clear();
    s.flags.clear();
  }));
}

TEST(TimingMessageTest, ReadingsRoundTrip) {
  const DeviceReading device{.probe_steps = 1'800,
                             .flop_per_cycle = 64.5,
                             .canary_flop = 320'000,
                             .clock_mhz = 3'690,
                             .probe_cycles = {9'000, 9'010},
                             .least_probe_cycles = 8'900,
                             .read_bytes_per_second = 2e10,
                             .triad_bytes_per_second = 1.5e10};
  const CanaryReading canary{.took = {1, 2, 3}};
  EXPECT_EQ(DecodeBytes<DeviceReading>(EncodeBytes(device)), device);
  EXPECT_EQ(DecodeBytes<CanaryReading>(EncodeBytes(canary)), canary);
  EXPECT_FALSE(DecodeBytes<CanaryReading>(""));
}

TEST(TimingMessageTest, ACanaryThatTookNoTimeIsJunk) {
  EXPECT_FALSE(DecodeBytes<CanaryReading>(EncodeBytes(CanaryReading{.took = {0, 2, 3}})));
}

}  // namespace
}  // namespace loopfleet::worker
