#include "worker/gpu/device/gpu_message.h"

#include <algorithm>

#include "kernel/byte_codec.h"
#include "kernel/compile_message.h"
#include "worker/timing/timing_message.h"

namespace loopfleet {

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, DeviceState>& state) {
  archive(state.temperature_c, state.power_w, state.memory_clock_mhz, state.throttle_reasons);
  archive.Require([&] {  // the wire accepts no other values
    return worker::IsAmount(state.temperature_c) && worker::IsAmount(state.power_w) &&
           worker::IsAmount(state.memory_clock_mhz);
  });
}

}  // namespace loopfleet

namespace loopfleet::worker {

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, SharedBuffers>& shared) {
  archive(shared.size);
  archive.List(shared.buffers, kMaxKernelBuffers);
}

template <class Archive>
void Fields(Archive& /*archive*/, FieldsOf<Archive, GpuCheckRequest>& /*check*/) {}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, GpuRunRequest>& run) {
  archive(run.image);
  archive.List(run.specs, kMaxKernelBuffers);
  archive(run.inputs, run.outputs);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, GpuTimeRequest>& time) {
  archive(time.policy);
}

static bool CanBe(const SensorReading& reading) {
  return IsAmount(reading.clock_mhz) && IsAmount(reading.memory_clock_mhz) &&
         IsAmount(reading.temperature_c) && IsAmount(reading.power_w);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, DeviceSamples>& samples) {
  archive(samples.samples, samples.is_batched, samples.copies, samples.before, samples.after,
          samples.state, samples.throttled, samples.was_shared);
  archive.Require([&] { return CanBe(samples.before) && CanBe(samples.after); });
}

template <class Archive>
void Fields(Archive& /*archive*/, FieldsOf<Archive, GpuLaunchesRequest>& /*launches*/) {}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, LaunchTimes>& times) {
  archive(times.plain_ns, times.marked_ns, times.runs);
  archive.List(times.turns, kMostLaunchTurns);
  archive.Require([&] {
    return times.plain_ns > 0 && times.runs > 0 && !times.turns.empty() &&
           IsAmount(times.plain_ns) && IsAmount(times.marked_ns) &&
           std::ranges::all_of(times.turns, [](const std::vector<double>& launches) {
             return std::ranges::all_of(launches, IsAmount);
           });
  });
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, GpuDone>& done) {
  archive(done.took_ns);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, GpuReply>& reply) {
  archive(reply.is_lost, reply.answer);
}

std::string Encode(const GpuRequest& request) { return EncodeBytes(request); }
std::optional<GpuRequest> DecodeGpuRequest(std::string_view bytes) {
  return DecodeBytes<GpuRequest>(bytes);
}
std::string Encode(const GpuReply& reply) { return EncodeBytes(reply); }
std::optional<GpuReply> DecodeGpuReply(std::string_view bytes) {
  return DecodeBytes<GpuReply>(bytes);
}

}  // namespace loopfleet::worker
