#include "worker/gpu/device/gpu_message.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <span>

#include "worker/gpu/codegen/gpu_image.h"
#include "worker/gpu/device/gpu_judge.h"
#include "worker/gpu/device/gpu_machine.h"

namespace loopfleet::worker {
namespace {

DeviceSamples SomeSamples() {
  DeviceSamples samples;
  samples.samples.iterations = 20'000;
  samples.samples.ns = {100, 101, 100, 100, 100};
  samples.samples.flags = {0, kSampleThrottled, 0, 0, 0};
  samples.is_batched = true;
  samples.copies = 3;
  samples.before.clock_mhz = 1500;
  samples.after.throttle_reasons = 0x40;
  samples.state = DeviceState{
      .temperature_c = 71, .power_w = 350, .memory_clock_mhz = 2600, .throttle_reasons = 0x44};
  samples.throttled = 1;
  samples.was_shared = true;
  return samples;
}

TEST(GpuMessage, RepliesComeBackAsTheyWere) {
  const auto decoded = DecodeGpuReply(Encode(GpuReply{.answer = SomeSamples(), .is_lost = true}));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_TRUE(decoded->is_lost);
  const auto& samples = std::get<DeviceSamples>(*decoded->answer);
  EXPECT_EQ(samples.samples, SomeSamples().samples);
  EXPECT_EQ(samples.before, SomeSamples().before);
  EXPECT_EQ(samples.after, SomeSamples().after);
  EXPECT_EQ(samples.state, SomeSamples().state);
  EXPECT_EQ(samples.copies, 3);
  EXPECT_TRUE(samples.was_shared);

  const GpuReply failed{
      .answer = std::unexpected(Failure{.code = FailureCode::kRunOom, .message = "no memory"})};
  const auto failure = DecodeGpuReply(Encode(failed));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->answer.error().code, FailureCode::kRunOom);
  EXPECT_FALSE(failure->is_lost);
}

TEST(GpuMessage, WhatIsCutOffOrChangedIsNoReply) {
  const std::string bytes = Encode(GpuReply{.answer = SomeSamples()});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeGpuReply(bytes.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(DecodeGpuReply(bytes + "x").has_value());
  DeviceSamples impossible = SomeSamples();
  impossible.samples.ns[0] = -1;
  EXPECT_FALSE(DecodeGpuReply(Encode(GpuReply{.answer = impossible})).has_value());
  impossible = SomeSamples();
  impossible.state->power_w = -1;
  EXPECT_FALSE(DecodeGpuReply(Encode(GpuReply{.answer = impossible})).has_value());
}

LaunchTimes SomeTimes() {
  return {.plain_ns = 100, .marked_ns = 110, .runs = 2, .turns = {{10, 30, 160}, {20, 20, 160}}};
}

TEST(GpuMessage, TimesOfLaunchesComeBackAsTheyWere) {
  const auto decoded = DecodeGpuReply(Encode(GpuReply{.answer = SomeTimes()}));
  ASSERT_TRUE(decoded.has_value());
  const auto& times = std::get<LaunchTimes>(*decoded->answer);
  EXPECT_EQ(times.plain_ns, 100);
  EXPECT_EQ(times.marked_ns, 110);
  EXPECT_EQ(times.runs, 2U);
  EXPECT_EQ(times.turns, SomeTimes().turns);
  EXPECT_TRUE(std::holds_alternative<GpuLaunchesRequest>(
      *DecodeGpuRequest(Encode(GpuRequest{GpuLaunchesRequest{}}))));
  const std::function<void(LaunchTimes&)> damages[] = {
      [](LaunchTimes& it) { it.plain_ns = 0; },
      [](LaunchTimes& it) { it.marked_ns = -1; },
      [](LaunchTimes& it) { it.runs = 0; },
      [](LaunchTimes& it) { it.turns.clear(); },
      [](LaunchTimes& it) { it.turns.resize(kMostLaunchTurns + 1); },
      [](LaunchTimes& it) { it.turns[1][2] = std::numeric_limits<double>::infinity(); },
  };
  for (const auto& damage : damages) {
    LaunchTimes impossible = SomeTimes();
    damage(impossible);
    EXPECT_FALSE(DecodeGpuReply(Encode(GpuReply{.answer = impossible})).has_value());
  }
}

TEST(GpuMessage, RequestsComeBackAsTheyWere) {
  GpuRunRequest run{.image = "image",
                    .specs = {{.role = BufferSpec::Role::kOutput, .element_count = 7}},
                    .inputs = {.size = 8192, .buffers = {{.offset = 64, .size = 28}}},
                    .outputs = {}};
  const auto decoded = DecodeGpuRequest(Encode(GpuRequest{run}));
  ASSERT_TRUE(decoded.has_value());
  const auto& back = std::get<GpuRunRequest>(*decoded);
  EXPECT_EQ(back.image, run.image);
  EXPECT_EQ(back.specs, run.specs);
  EXPECT_EQ(back.inputs.buffers, run.inputs.buffers);
  EXPECT_TRUE(std::holds_alternative<GpuCheckRequest>(
      *DecodeGpuRequest(Encode(GpuRequest{GpuCheckRequest{}}))));
  const GpuTimeRequest time{.policy = {.min_samples = 9}};
  EXPECT_EQ(std::get<GpuTimeRequest>(*DecodeGpuRequest(Encode(GpuRequest{time}))).policy,
            time.policy);
}

TEST(GpuImage, ComesBackAsItWas) {
  const GpuImage image{.ptx = "ptx",
                       .cubin = std::string("\177ELF\0x", 6),
                       .launches = {{.symbol = "a", .blocks = 2, .threads = 256}}};
  const std::string bytes = Encode(image);
  EXPECT_EQ(DecodeGpuImage(bytes), image);
  EXPECT_FALSE(DecodeGpuImage(bytes.substr(0, bytes.size() - 1)).has_value());
  EXPECT_EQ(image.code(), image.cubin);
  EXPECT_EQ((GpuImage{.ptx = "ptx", .cubin = "", .launches = {}}.code()), "ptx");
}

TEST(GpuJudge, NoFigureOfASharedOrFakeDeviceIsGradedWell) {
  DeviceSamples samples = SomeSamples();
  samples.was_shared = false;
  const auto grade = [&](DeviceTruth truth) {
    return JudgeSamples(samples, {}, {.flop_count = 10, .output_bytes = 4}, {}, truth)->grade;
  };
  EXPECT_EQ(grade(DeviceTruth::kReal), Grade::kA);
  EXPECT_EQ(grade(DeviceTruth::kFake), Grade::kC);
  samples.was_shared = true;
  EXPECT_EQ(grade(DeviceTruth::kReal), Grade::kC);
}

TEST(GpuJudge, NoFigureIsBetterThanTheClockOfTheDevice) {
  DeviceSamples samples = SomeSamples();
  samples.was_shared = false;
  samples.samples.ns.assign(5, 4096);
  const auto judge = [&](std::uint64_t runs) {
    samples.samples.iterations = runs;
    return JudgeSamples(samples, {}, {.flop_count = 10}, {}, DeviceTruth::kReal).value();
  };
  const Measurement single = judge(1);
  EXPECT_EQ(single.elapsed_low_ns, 3596);
  EXPECT_EQ(single.elapsed_high_ns, 4596);
  EXPECT_EQ(single.spread, 500.0 / 4096);
  EXPECT_EQ(single.grade, Grade::kC);
  EXPECT_EQ(judge(500).grade, Grade::kA);
  samples.samples.ns.assign(5, 500);
  EXPECT_EQ(WhyNoMeasurement(judge(1)), std::nullopt);
}

TEST(GpuJudge, TellsWhatTheSensorsSaid) {
  DeviceSamples samples = SomeSamples();
  const auto device = [&] {
    return JudgeSamples(samples, {}, {.flop_count = 10}, {}, DeviceTruth::kReal)->device;
  };
  EXPECT_EQ(device(), samples.state);
  samples.state.reset();
  EXPECT_EQ(device(), std::nullopt);
}

TEST(GpuJudge, ARootsShareIsThatOfItsLaunches) {
  const std::vector<looptree::TreeRef> roots = {0, 0, 7};
  const auto profile = ProfileOfLaunches(roots, SomeTimes());
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->level, ProfileLevel::kRoots);
  EXPECT_NEAR(profile->overhead, 0.1, 1e-12);
  EXPECT_EQ(profile->run_ns, 100);
  const std::vector<ProfileLine>& lines = profile->lines;
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].place, (ProfilePlace{.ref = 0}));
  EXPECT_DOUBLE_EQ(lines[0].share, 0.2);
  EXPECT_DOUBLE_EQ(lines[0].cycles, 20);
  EXPECT_DOUBLE_EQ(lines[0].entries, 1);
  EXPECT_EQ(lines[1].place, (ProfilePlace{.ref = 7}));
  EXPECT_DOUBLE_EQ(lines[1].share, 0.8);
  EXPECT_DOUBLE_EQ(lines[1].cycles, 80);
  EXPECT_EQ(lines[2].place.part, ProfilePart::kOutside);
  EXPECT_NEAR(lines[2].share, 0, 1e-12);

  const auto other = ProfileOfLaunches(std::span(roots).first(2), SomeTimes());
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, FailureCode::kCompileError);
}

TEST(GpuJudge, WhatIsAboveThePeakIsRefused) {
  HardwareFacts hardware;
  hardware.peaks.flop_per_second = 1e9;
  const auto judged =
      JudgeSamples(SomeSamples(), {}, {.flop_count = 1'000'000}, hardware, DeviceTruth::kReal);
  ASSERT_FALSE(judged.has_value());
  EXPECT_EQ(judged.error().code, FailureCode::kUnstableTiming);
}

TEST(GpuHardware, TellsDevicesAndDriversApart) {
  GpuProbe probe;
  probe.facts = {.name = "NVIDIA Thing",
                 .bus_id = "",
                 .compute_capability = 90,
                 .driver_version = 13000,
                 .multiprocessors = 132,
                 .memory_bytes = std::int64_t{80} << 30,
                 .l2_bytes = 50 << 20};
  probe.driver_version = "580.65.06";
  probe.max_clock_mhz = 1980;
  HardwareFacts host;
  host.host = "node1";
  const HardwareFacts facts = GpuHardware(probe, host);
  EXPECT_EQ(facts.device, DeviceKind::kCuda);
  EXPECT_EQ(facts.model, "NVIDIA Thing");
  EXPECT_EQ(facts.isa, "sm_90");
  EXPECT_EQ(facts.microcode, "CUDA 13.0, driver 580.65.06");
  EXPECT_EQ(facts.host, "node1");
  EXPECT_EQ(facts.hardware_class,
            "cuda:NVIDIA Thing:sm_90:132sm:l2=51200K:81920M:clock=1980:CUDA 13.0, driver "
            "580.65.06");
  probe.facts.is_fake = true;  // overrides the driver's name for the device
  EXPECT_EQ(GpuHardware(probe, host).model, "fake");
}

}  // namespace
}  // namespace loopfleet::worker
