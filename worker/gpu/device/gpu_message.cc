#include "worker/gpu/device/gpu_message.h"

#include <cmath>
#include <utility>

#include "common/wire/bounds.h"
#include "kernel/byte_codec.h"
#include "worker/processes/child_message.h"
#include "worker/timing/timing_message.h"

namespace loopfleet::worker {
namespace {

enum class RequestTag : std::uint8_t { kCheck, kRun, kTime };
enum class ReplyTag : std::uint8_t { kDone, kSamples, kFailure };

void Put(ByteWriter& writer, const SharedBuffers& shared) {
  writer.Put(shared.size);
  writer.Put(std::uint64_t{shared.buffers.size()});
  for (const PlacedBuffer& buffer : shared.buffers) {
    writer.Put(std::uint64_t{buffer.offset});
    writer.Put(std::uint64_t{buffer.size});
  }
}

SharedBuffers GetShared(ByteReader& reader) {
  SharedBuffers shared{.size = reader.Get<std::uint64_t>(), .buffers = {}};
  shared.buffers.resize(reader.GetCount(kMaxKernelBuffers));
  for (PlacedBuffer& buffer : shared.buffers) {
    buffer.offset = reader.Get<std::uint64_t>();
    buffer.size = reader.Get<std::uint64_t>();
  }
  return shared;
}

void Put(ByteWriter& writer, const SensorReading& reading) {
  writer.Put(reading.clock_mhz);
  writer.Put(reading.memory_clock_mhz);
  writer.Put(reading.temperature_c);
  writer.Put(reading.power_w);
  writer.Put(reading.throttle_reasons);
}

SensorReading GetSensors(ByteReader& reader) {
  SensorReading reading;
  reading.clock_mhz = reader.Get<double>();
  reading.memory_clock_mhz = reader.Get<double>();
  reading.temperature_c = reader.Get<double>();
  reading.power_w = reader.Get<double>();
  reading.throttle_reasons = reader.Get<std::uint64_t>();
  return reading;
}

void Put(ByteWriter& writer, const std::optional<DeviceState>& state) {
  writer.Put(static_cast<std::uint8_t>(state.has_value()));
  if (!state) return;
  writer.Put(state->temperature_c);
  writer.Put(state->power_w);
  writer.Put(state->memory_clock_mhz);
  writer.Put(state->throttle_reasons);
}

std::optional<DeviceState> GetState(ByteReader& reader) {
  if (reader.Get<std::uint8_t>() == 0) return std::nullopt;
  DeviceState state;
  state.temperature_c = reader.Get<double>();
  state.power_w = reader.Get<double>();
  state.memory_clock_mhz = reader.Get<double>();
  state.throttle_reasons = reader.Get<std::uint64_t>();
  return state;
}

// The wire accepts no other values.
bool IsAmount(double value) { return std::isfinite(value) && value >= 0; }

bool CanBe(const SensorReading& reading) {
  return IsAmount(reading.clock_mhz) && IsAmount(reading.memory_clock_mhz) &&
         IsAmount(reading.temperature_c) && IsAmount(reading.power_w);
}

bool CanBe(const DeviceState& state) {
  return IsAmount(state.temperature_c) && IsAmount(state.power_w) &&
         IsAmount(state.memory_clock_mhz);
}

}  // namespace

std::string Encode(const GpuRequest& request) {
  struct Encoder {
    ByteWriter writer;
    void operator()(const GpuCheckRequest&) { writer.Put(RequestTag::kCheck); }
    void operator()(const GpuRunRequest& run) {
      writer.Put(RequestTag::kRun);
      writer.PutText(run.image);
      writer.Put(std::uint64_t{run.specs.size()});
      for (const BufferSpec& spec : run.specs) {
        writer.Put(spec.role);
        writer.Put(spec.element_count);
      }
      Put(writer, run.inputs);
      Put(writer, run.outputs);
    }
    void operator()(const GpuTimeRequest& time) {
      writer.Put(RequestTag::kTime);
      worker::Put(writer, time.policy);
    }
  } encoder;
  std::visit(encoder, request);
  return encoder.writer.Take();
}

std::optional<GpuRequest> DecodeGpuRequest(std::string_view bytes) {
  ByteReader reader(bytes);
  GpuRequest request;
  switch (reader.GetEnum(RequestTag::kTime)) {
    case RequestTag::kCheck: request = GpuCheckRequest{}; break;
    case RequestTag::kRun: {
      GpuRunRequest run;
      run.image = reader.GetText();
      run.specs.resize(reader.GetCount(kMaxKernelBuffers));
      for (BufferSpec& spec : run.specs) {
        spec.role = reader.GetEnum(BufferSpec::Role::kScratch);
        spec.element_count = reader.Get<std::uint64_t>();
      }
      run.inputs = GetShared(reader);
      run.outputs = GetShared(reader);
      request = std::move(run);
      break;
    }
    case RequestTag::kTime: request = GpuTimeRequest{.policy = GetPolicy(reader)}; break;
  }
  if (!reader.AtEnd()) return std::nullopt;
  return request;
}

std::string Encode(const GpuReply& reply) {
  ByteWriter writer;
  writer.Put(static_cast<std::uint8_t>(reply.is_lost));
  if (!reply.answer) {
    writer.Put(ReplyTag::kFailure);
    writer.Put(static_cast<std::uint16_t>(reply.answer.error().code));
    writer.PutText(reply.answer.error().message);
    return writer.Take();
  }
  if (const auto* done = std::get_if<GpuDone>(&*reply.answer)) {
    writer.Put(ReplyTag::kDone);
    writer.Put(done->took_ns);
    return writer.Take();
  }
  const auto& samples = std::get<DeviceSamples>(*reply.answer);
  writer.Put(ReplyTag::kSamples);
  worker::Put(writer, samples.samples);
  writer.Put(static_cast<std::uint8_t>(samples.is_batched));
  writer.Put(std::int32_t{samples.copies});
  Put(writer, samples.before);
  Put(writer, samples.after);
  Put(writer, samples.state);
  writer.Put(std::int32_t{samples.throttled});
  writer.Put(static_cast<std::uint8_t>(samples.was_shared));
  return writer.Take();
}

std::optional<GpuReply> DecodeGpuReply(std::string_view bytes) {
  ByteReader reader(bytes);
  GpuReply reply;
  reply.is_lost = reader.Get<std::uint8_t>() != 0;
  switch (reader.GetEnum(ReplyTag::kFailure)) {
    case ReplyTag::kDone: reply.answer = GpuDone{.took_ns = reader.Get<std::uint64_t>()}; break;
    case ReplyTag::kSamples: {
      std::optional<Samples> samples = GetSamples(reader);
      if (!samples) return std::nullopt;
      DeviceSamples all{.samples = *std::move(samples)};
      all.is_batched = reader.Get<std::uint8_t>() != 0;
      all.copies = reader.Get<std::int32_t>();
      all.before = GetSensors(reader);
      all.after = GetSensors(reader);
      all.state = GetState(reader);
      all.throttled = reader.Get<std::int32_t>();
      all.was_shared = reader.Get<std::uint8_t>() != 0;
      if (!CanBe(all.before) || !CanBe(all.after)) return std::nullopt;
      if (all.state && !CanBe(*all.state)) return std::nullopt;
      reply.answer = std::move(all);
      break;
    }
    case ReplyTag::kFailure: {
      const std::optional<FailureCode> code = FailureCodeOf(reader.Get<std::uint16_t>());
      std::string message(reader.GetText().substr(0, wire::kMaxFailureTextBytes));
      if (!code) return std::nullopt;
      reply.answer = std::unexpected(Failure{.code = *code, .message = std::move(message)});
      break;
    }
  }
  if (!reader.AtEnd()) return std::nullopt;
  return reply;
}

}  // namespace loopfleet::worker
