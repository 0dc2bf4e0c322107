#include "worker/processes/child_message.h"

#include "kernel/byte_codec.h"
#include "worker/timing/timing_message.h"

namespace loopfleet::worker {

// ---- reference ----------------------------------------------------------------------------------

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, InputSeed>& seed) {
  archive(seed.value);
  archive.Enum(seed.numbers, InputNumbers::kFractions);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, ReferenceRequest>& request) {
  archive(request.seed, request.inputs_size, request.reference_size, request.ir,
          request.time_limit_s);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, ReferenceReply>& reply) {
  archive.List(reply.exact, kMaxKernelBuffers);
  archive(reply.refusal);
}

std::string Encode(const ReferenceRequest& request) { return EncodeBytes(request); }
std::optional<ReferenceRequest> DecodeReferenceRequest(std::string_view bytes) {
  return DecodeBytes<ReferenceRequest>(bytes);
}
std::string Encode(const ReferenceReply& reply) { return EncodeBytes(reply); }
std::optional<ReferenceReply> DecodeReferenceReply(std::string_view bytes) {
  return DecodeBytes<ReferenceReply>(bytes);
}

// ---- executor -----------------------------------------------------------------------------------

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CallSlots>& call) {
  archive(call.entry, call.inputs, call.arena, call.arena_buffers);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, MapRequest>& map) {
  archive.Enum(map.kind, MapRequest::Kind::kArena);
  archive(map.place, map.size);
  archive.List(map.buffers, kMaxKernelBuffers);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, RunRequest>& run) {
  archive(run.number, run.call, run.batch_ns, run.time_limit_s);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, TimeRequest>& time) {
  archive(time.number, time.call, time.policy, time.time_limit_s);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, MeterRequest>& meter) {
  constexpr std::uint64_t kMostBlocks = 64;
  archive(meter.number, meter.stream_bytes);
  archive.List(meter.load_blocks, kMostBlocks);
  archive(meter.time_limit_s);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CanaryRequest>& canary) {
  archive(canary.number, canary.probe_steps, canary.second_cache_bytes, canary.time_limit_s);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CodeSampler::Plan>& plan) {
  archive(plan.code_address, plan.code_bytes, plan.duration_ns, plan.interval_ns,
          plan.runs_between_looks);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, SampleRequest>& sample) {
  archive(sample.number, sample.call, sample.plan, sample.time_limit_s);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, RunDone>& done) {
  archive(done.number, done.run_ns);
  archive.Require([&] { return IsAmount(done.run_ns); });
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, Timed>& timed) {
  archive(timed.number, timed.outside.ns, timed.samples);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, DeviceReply>& device) {
  archive(device.number, device.reading);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CanaryReply>& canary) {
  archive(canary.number, canary.reading);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, Crashed>& crashed) {
  constexpr std::int32_t kLastSignal = 64;
  archive(crashed.signal);
  archive.Require([&] { return crashed.signal >= 1 && crashed.signal <= kLastSignal; });
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, Sampled>& sampled) {
  archive(sampled.number, sampled.samples.runs, sampled.samples.processor_ns);
  archive.List(sampled.samples.offsets, kMostCodeSamples);
  archive.Require([&] { return sampled.samples.runs > 0; });
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, ForbiddenCall>& call) {
  archive(call.system_call);
}

std::string Encode(const ExecutorRequest& request) { return EncodeBytes(request); }
std::optional<ExecutorRequest> DecodeExecutorRequest(std::string_view bytes) {
  return DecodeBytes<ExecutorRequest>(bytes);
}
std::string Encode(const ExecutorReply& reply) { return EncodeBytes(reply); }
std::optional<ExecutorReply> DecodeExecutorReply(std::string_view bytes) {
  if (const auto forbidden = DecodeForbiddenCall(bytes)) return *forbidden;
  return DecodeBytes<ExecutorReply>(bytes);
}

}  // namespace loopfleet::worker
