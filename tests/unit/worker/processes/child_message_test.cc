#include "worker/processes/child_message.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/base/random.h"
#include "kernel/byte_codec.h"

namespace loopfleet::worker {
namespace {

CompiledKernel SomeKernel() {
  return {.kernel = {.object = std::string("\x7f"
                                           "ELF\0code",
                                           9),
                     .buffers = {{.role = BufferSpec::Role::kInput, .element_count = 12},
                                 {.role = BufferSpec::Role::kOutput, .element_count = 3},
                                 {.role = BufferSpec::Role::kScratch, .element_count = 99}},
                     .scratch_bytes = 396,
                     .notes = {"L3 vectorize"}},
          .code = {.bytes = std::string("\x90\0\xc3", 3), .entry = 2}};
}

std::string SomeReply() {
  return Encode(
      ExecutorReply(Timed{.samples = {.iterations = 3, .ns = {1, 2, 3}, .flags = {0, 0, 0}},
                          .outside = {{1, 2, 3, 4, 5, 6}}}));
}

TEST(ChildMessageTest, CompileRequestsComeBack) {
  const CompileRequest request{.code_address = 4096, .max_code_bytes = 77, .ir = "text"};
  const auto back = DecodeCompileRequest(Encode(request));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->code_address, 4096U);
  EXPECT_EQ(back->max_code_bytes, 77U);
  EXPECT_EQ(back->ir, "text");
}

TEST(ChildMessageTest, CompileRepliesComeBack) {
  const auto kernel = DecodeCompileReply(EncodeCompileReply(SomeKernel()));
  ASSERT_TRUE(kernel && kernel->has_value());
  EXPECT_EQ((*kernel)->kernel, SomeKernel().kernel);
  EXPECT_EQ((*kernel)->code, SomeKernel().code);
  const Failure failure{.code = FailureCode::kLimitUnroll, .message = "too many"};
  const auto failed = DecodeCompileReply(EncodeCompileReply(std::unexpected(failure)));
  ASSERT_TRUE(failed && !failed->has_value());
  EXPECT_EQ(failed->error(), failure);
}

TEST(ChildMessageTest, ExecutorRequestsComeBack) {
  const MapRequest map{.kind = MapRequest::Kind::kArena,
                       .place = 2,
                       .size = 8192,
                       .buffers = {{.offset = 4160, .size = 4}, {.offset = 9000, .size = 8}}};
  const auto decoded = DecodeExecutorRequest(Encode(ExecutorRequest(map)));
  ASSERT_TRUE(decoded);
  const auto& back = std::get<MapRequest>(*decoded);
  EXPECT_EQ(back.kind, MapRequest::Kind::kArena);
  EXPECT_EQ(back.place, 2U);
  EXPECT_EQ(back.size, 8192U);
  EXPECT_EQ(back.buffers, map.buffers);

  const RunRequest run{.call = {.entry = 5, .inputs = 6, .arena = 7, .arena_buffers = 8},
                       .time_limit_s = 11};
  const auto ran = DecodeExecutorRequest(Encode(ExecutorRequest(run)));
  ASSERT_TRUE(ran);
  EXPECT_EQ(std::get<RunRequest>(*ran).call.entry, 5U);
  EXPECT_EQ(std::get<RunRequest>(*ran).call.inputs, 6U);
  EXPECT_EQ(std::get<RunRequest>(*ran).call.arena, 7U);
  EXPECT_EQ(std::get<RunRequest>(*ran).call.arena_buffers, 8U);
  EXPECT_EQ(std::get<RunRequest>(*ran).time_limit_s, 11U);

  const TimeRequest time{.policy = {.min_samples = 3, .min_repetition_ns = 4}, .time_limit_s = 5};
  const auto timed = DecodeExecutorRequest(Encode(ExecutorRequest(time)));
  ASSERT_TRUE(timed);
  EXPECT_EQ(std::get<TimeRequest>(*timed).policy.min_samples, 3U);
  EXPECT_EQ(std::get<TimeRequest>(*timed).policy.min_repetition_ns, 4U);
}

TEST(ChildMessageTest, TheDevicesRequestsAndRepliesRoundTrip) {
  const MeterRequest meter{.stream_bytes = 1, .time_limit_s = 2};
  const auto metered = DecodeExecutorRequest(Encode(ExecutorRequest(meter)));
  ASSERT_TRUE(metered);
  EXPECT_EQ(std::get<MeterRequest>(*metered).stream_bytes, 1U);
  const CanaryRequest canary{.probe_steps = 3, .second_cache_bytes = 4, .time_limit_s = 6};
  const auto sung = DecodeExecutorRequest(Encode(ExecutorRequest(canary)));
  ASSERT_TRUE(sung);
  EXPECT_EQ(std::get<CanaryRequest>(*sung).second_cache_bytes, 4U);

  const DeviceReply device{.number = 8, .reading = {.probe_steps = 7, .probe_cycles = {1, 2}}};
  const auto read = DecodeExecutorReply(Encode(ExecutorReply(device)));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<DeviceReply>(*read).number, 8U);
  EXPECT_EQ(std::get<DeviceReply>(*read).reading, device.reading);
  const auto none = DecodeExecutorReply(Encode(ExecutorReply(CanaryReply{})));
  ASSERT_TRUE(none);
  EXPECT_FALSE(std::get<CanaryReply>(*none).reading);
  const auto some = DecodeExecutorReply(
      Encode(ExecutorReply(CanaryReply{.reading = CanaryReading{.took = {1, 2, 3}}})));
  ASSERT_TRUE(some);
  EXPECT_EQ(std::get<CanaryReply>(*some).reading->took[2], 3);
}

TEST(ChildMessageTest, WhatProfilesNeedComesBack) {
  const CompileRequest request{
      .instrumentation = {.kind = Instrumentation::Kind::kCounters, .loops = {3, 5}}, .ir = "text"};
  const auto asked = DecodeCompileRequest(Encode(request));
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->instrumentation, request.instrumentation);
  EXPECT_EQ(asked->ir, "text");

  CompiledKernel kernel = SomeKernel();
  kernel.kernel.profile = {
      .probes =
          ProbeCells{.offset = 64,
                     .sites = {{.place = {.part = ProfilePart::kOutside}},
                               {.place = {.ref = 4}, .parent = 0, .entries = 7, .is_root = true}}},
      .spans = {{.begin = -3, .place = {.ref = 2, .part = ProfilePart::kZero}}},
      .fused = {{1, 2}},
      .launch_roots = {0, 0, 6}};
  const auto made = DecodeCompileReply(EncodeCompileReply(kernel));
  ASSERT_TRUE(made && made->has_value());
  EXPECT_EQ((*made)->kernel, kernel.kernel);

  const SampleRequest sample{.number = 3,
                             .call = {.entry = 5},
                             .plan = {.code_address = 6,
                                      .code_bytes = 7,
                                      .duration_ns = 8,
                                      .interval_ns = 9,
                                      .runs_between_looks = 10},
                             .time_limit_s = 11};
  const auto decoded = DecodeExecutorRequest(Encode(ExecutorRequest(sample)));
  ASSERT_TRUE(decoded);
  const auto& back = std::get<SampleRequest>(*decoded);
  EXPECT_EQ(back.call.entry, 5U);
  EXPECT_EQ(back.plan.code_address, 6U);
  EXPECT_EQ(back.plan.code_bytes, 7U);
  EXPECT_EQ(back.plan.duration_ns, 8U);
  EXPECT_EQ(back.plan.interval_ns, 9U);
  EXPECT_EQ(back.plan.runs_between_looks, 10U);
  EXPECT_EQ(back.time_limit_s, 11U);

  const auto reply_of = [](CodeSamples samples) {
    return DecodeExecutorReply(
        Encode(ExecutorReply(Sampled{.number = 4, .samples = std::move(samples)})));
  };
  const auto sampled =
      reply_of({.offsets = {1, CodeSamples::kElsewhere}, .runs = 12, .processor_ns = 13});
  ASSERT_TRUE(sampled);
  EXPECT_EQ(std::get<Sampled>(*sampled).number, 4U);
  EXPECT_EQ(std::get<Sampled>(*sampled).samples.offsets,
            (std::vector<std::uint32_t>{1, CodeSamples::kElsewhere}));
  EXPECT_EQ(std::get<Sampled>(*sampled).samples.runs, 12U);
  EXPECT_EQ(std::get<Sampled>(*sampled).samples.processor_ns, 13U);
  EXPECT_FALSE(reply_of({.offsets = {}, .runs = 0, .processor_ns = 13}));
  EXPECT_FALSE(reply_of({.offsets = std::vector<std::uint32_t>(kMostCodeSamples + 1),
                         .runs = 1,
                         .processor_ns = 13}));
}

TEST(ChildMessageTest, ACrashIsASignal) {
  const auto decode = [](std::int32_t signal) {
    char bytes[kLastWordBytes];
    EncodeCrashed(signal, bytes);
    EXPECT_EQ(Encode(ExecutorReply(Crashed{.signal = signal})), std::string(bytes, sizeof bytes));
    return DecodeExecutorReply({bytes, sizeof bytes});
  };
  const auto crashed = decode(11);
  ASSERT_TRUE(crashed);
  EXPECT_EQ(std::get<Crashed>(*crashed).signal, 11);
  EXPECT_FALSE(decode(0));
  EXPECT_FALSE(decode(65));
  EXPECT_FALSE(decode(-1));
}

TEST(ChildMessageTest, SamplesThatCannotBeAreJunk) {
  const auto decode = [](std::vector<double> ns, std::uint64_t iterations = 1) {
    Timed timed{.samples = {.iterations = iterations, .ns = std::move(ns)}};
    timed.samples.flags.assign(timed.samples.ns.size(), kSampleAccepted);
    return DecodeExecutorReply(Encode(ExecutorReply(timed)));
  };
  EXPECT_TRUE(decode({1.5, 2.5}));
  EXPECT_FALSE(decode({}));
  EXPECT_FALSE(decode({1.5}, 0));
  EXPECT_FALSE(decode({0}));
  EXPECT_FALSE(decode({-1}));
  EXPECT_FALSE(decode({std::numeric_limits<double>::infinity()}));
  EXPECT_FALSE(decode({std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_FALSE(decode(std::vector<double>(100'000, 1.0)));
}

TEST(ChildMessageTest, CutOffAndOverlongMessagesAreJunk) {
  const std::string compile = EncodeCompileReply(SomeKernel());
  const std::string reply = SomeReply();
  for (std::size_t n = 0; n < compile.size(); ++n) {
    EXPECT_FALSE(DecodeCompileReply(compile.substr(0, n))) << n;
  }
  for (std::size_t n = 0; n < reply.size(); ++n) {
    EXPECT_FALSE(DecodeExecutorReply(reply.substr(0, n))) << n;
  }
  EXPECT_FALSE(DecodeCompileReply(compile + "x"));
  EXPECT_FALSE(DecodeExecutorReply(reply + "x"));
}

TEST(ChildMessageTest, CountsBeyondTheBytesAllocateNothing) {
  ByteWriter writer;
  writer.Put(std::uint8_t{1});  // Timed
  writer(std::uint64_t{1}, SlotTime{}.ns);
  writer.Put(SamplingEnd::kDone);
  writer(std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max());  // so many samples
  EXPECT_FALSE(DecodeExecutorReply(writer.Take()));
}

TEST(ChildMessageTest, FlippedBytesNeverCrash) {
  SplitMix64 random(7);
  const std::string compile = EncodeCompileReply(SomeKernel());
  const std::string reply = SomeReply();
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = i % 2 == 0 ? compile : reply;
    for (std::uint64_t flips = random.Below(4) + 1; flips > 0; --flips) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
    }
    static_cast<void>(DecodeCompileReply(bytes));
    static_cast<void>(DecodeExecutorReply(bytes));
  }
}

}  // namespace
}  // namespace loopfleet::worker
