#include "worker/processes/child_message.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "kernel/byte_codec.h"
#include "worker/timing/timing_message.h"

namespace loopfleet::worker {
namespace {

enum class RequestTag : std::uint8_t { kMap, kRun, kTime, kMeter, kCanary, kSample };
enum class ReplyTag : std::uint8_t {
  kRunDone,
  kTimed,
  kDevice,
  kCanary,
  kCrashed = static_cast<std::uint8_t>(LastWordTag::kCrashed),
  kSampled,
  kForbiddenCall = static_cast<std::uint8_t>(LastWordTag::kForbiddenCall),
};

void PutBuffers(ByteWriter& writer, const std::vector<PlacedBuffer>& buffers) {
  writer.Put(std::uint64_t{buffers.size()});
  for (const PlacedBuffer& buffer : buffers) {
    writer.Put(std::uint64_t{buffer.offset});
    writer.Put(std::uint64_t{buffer.size});
  }
}

std::vector<PlacedBuffer> GetBuffers(ByteReader& reader) {
  std::vector<PlacedBuffer> buffers(reader.GetCount(kMaxKernelBuffers));
  for (PlacedBuffer& buffer : buffers) {
    buffer.offset = reader.Get<std::uint64_t>();
    buffer.size = reader.Get<std::uint64_t>();
  }
  return buffers;
}

void PutCall(ByteWriter& writer, const CallSlots& call) {
  writer.Put(call.entry);
  writer.Put(call.inputs);
  writer.Put(call.arena);
  writer.Put(call.arena_buffers);
}

CallSlots GetCall(ByteReader& reader) {
  CallSlots call;
  call.entry = reader.Get<std::uint64_t>();
  call.inputs = reader.Get<std::uint32_t>();
  call.arena = reader.Get<std::uint32_t>();
  call.arena_buffers = reader.Get<std::uint32_t>();
  return call;
}

}  // namespace

std::string Encode(const ReferenceRequest& request) {
  ByteWriter writer;
  writer.Put(request.seed.value);
  writer.Put(request.seed.numbers);
  writer.Put(request.inputs_size);
  writer.Put(request.reference_size);
  writer.PutText(request.ir);
  writer.Put(request.time_limit_s);
  return writer.Take();
}

std::optional<ReferenceRequest> DecodeReferenceRequest(std::string_view bytes) {
  ByteReader reader(bytes);
  ReferenceRequest request;
  request.seed.value = reader.Get<std::uint64_t>();
  request.seed.numbers = reader.GetEnum(InputNumbers::kFractions);
  request.inputs_size = reader.Get<std::uint64_t>();
  request.reference_size = reader.Get<std::uint64_t>();
  request.ir = reader.GetText();
  request.time_limit_s = reader.Get<std::uint64_t>();
  if (!reader.AtEnd()) return std::nullopt;
  return request;
}

std::string Encode(const ReferenceReply& reply) {
  ByteWriter writer;
  writer.Put(std::uint64_t{reply.exact.size()});
  for (const bool exact : reply.exact) writer.Put(static_cast<std::uint8_t>(exact));
  writer.PutText(reply.refusal);
  return writer.Take();
}

std::optional<ReferenceReply> DecodeReferenceReply(std::string_view bytes) {
  ByteReader reader(bytes);
  ReferenceReply reply;
  reply.exact.resize(reader.GetCount(kMaxKernelBuffers));
  for (std::size_t i = 0; i < reply.exact.size(); ++i) {
    reply.exact[i] = reader.Get<std::uint8_t>() != 0;
  }
  reply.refusal = reader.GetText();
  if (!reader.AtEnd()) return std::nullopt;
  return reply;
}

std::string Encode(const ExecutorRequest& request) {
  ByteWriter writer;
  if (const auto* map = std::get_if<MapRequest>(&request)) {
    writer.Put(RequestTag::kMap);
    writer.Put(map->kind);
    writer.Put(map->place);
    writer.Put(map->size);
    PutBuffers(writer, map->buffers);
  } else if (const auto* run = std::get_if<RunRequest>(&request)) {
    writer.Put(RequestTag::kRun);
    writer.Put(run->number);
    PutCall(writer, run->call);
    writer.Put(run->batch_ns);
    writer.Put(run->time_limit_s);
  } else if (const auto* meter = std::get_if<MeterRequest>(&request)) {
    writer.Put(RequestTag::kMeter);
    writer.Put(meter->number);
    writer.Put(meter->last_cache_bytes);
    writer.Put(static_cast<std::uint32_t>(meter->load_blocks.size()));
    for (const std::uint64_t bytes : meter->load_blocks) writer.Put(bytes);
    writer.Put(meter->time_limit_s);
  } else if (const auto* canary = std::get_if<CanaryRequest>(&request)) {
    writer.Put(RequestTag::kCanary);
    writer.Put(canary->number);
    writer.Put(canary->probe_steps);
    writer.Put(canary->second_cache_bytes);
    writer.Put(canary->last_cache_bytes);
    writer.Put(canary->time_limit_s);
  } else if (const auto* sample = std::get_if<SampleRequest>(&request)) {
    writer.Put(RequestTag::kSample);
    writer.Put(sample->number);
    PutCall(writer, sample->call);
    writer.Put(sample->plan.code_address);
    writer.Put(sample->plan.code_bytes);
    writer.Put(sample->plan.duration_ns);
    writer.Put(sample->plan.interval_ns);
    writer.Put(sample->plan.runs_between_looks);
    writer.Put(sample->time_limit_s);
  } else {
    const auto& time = std::get<TimeRequest>(request);
    writer.Put(RequestTag::kTime);
    writer.Put(time.number);
    PutCall(writer, time.call);
    Put(writer, time.policy);
    writer.Put(time.time_limit_s);
  }
  return writer.Take();
}

std::optional<ExecutorRequest> DecodeExecutorRequest(std::string_view bytes) {
  ByteReader reader(bytes);
  ExecutorRequest request;
  switch (reader.GetEnum(RequestTag::kSample)) {
    case RequestTag::kMap: {
      MapRequest map;
      map.kind = reader.GetEnum(MapRequest::Kind::kArena);
      map.place = reader.Get<std::uint32_t>();
      map.size = reader.Get<std::uint64_t>();
      map.buffers = GetBuffers(reader);
      request = std::move(map);
      break;
    }
    case RequestTag::kRun: {
      RunRequest run;
      run.number = reader.Get<std::uint64_t>();
      run.call = GetCall(reader);
      run.batch_ns = reader.Get<std::uint64_t>();
      run.time_limit_s = reader.Get<std::uint64_t>();
      request = run;
      break;
    }
    case RequestTag::kTime: {
      TimeRequest time;
      time.number = reader.Get<std::uint64_t>();
      time.call = GetCall(reader);
      time.policy = GetPolicy(reader);
      time.time_limit_s = reader.Get<std::uint64_t>();
      request = time;
      break;
    }
    case RequestTag::kMeter: {
      MeterRequest meter;
      meter.number = reader.Get<std::uint64_t>();
      meter.last_cache_bytes = reader.Get<std::uint64_t>();
      constexpr std::uint32_t kMostBlocks = 64;
      const auto blocks = reader.Get<std::uint32_t>();
      if (blocks > kMostBlocks) return std::nullopt;
      for (std::uint32_t i = 0; i < blocks; ++i) {
        meter.load_blocks.push_back(reader.Get<std::uint64_t>());
      }
      meter.time_limit_s = reader.Get<std::uint64_t>();
      request = meter;
      break;
    }
    case RequestTag::kCanary: {
      CanaryRequest canary;
      canary.number = reader.Get<std::uint64_t>();
      canary.probe_steps = reader.Get<std::uint64_t>();
      canary.second_cache_bytes = reader.Get<std::uint64_t>();
      canary.last_cache_bytes = reader.Get<std::uint64_t>();
      canary.time_limit_s = reader.Get<std::uint64_t>();
      request = canary;
      break;
    }
    case RequestTag::kSample: {
      SampleRequest sample;
      sample.number = reader.Get<std::uint64_t>();
      sample.call = GetCall(reader);
      sample.plan.code_address = reader.Get<std::uint64_t>();
      sample.plan.code_bytes = reader.Get<std::uint64_t>();
      sample.plan.duration_ns = reader.Get<std::uint64_t>();
      sample.plan.interval_ns = reader.Get<std::uint64_t>();
      sample.plan.runs_between_looks = reader.Get<std::uint64_t>();
      sample.time_limit_s = reader.Get<std::uint64_t>();
      request = sample;
      break;
    }
  }
  if (!reader.AtEnd()) return std::nullopt;
  return request;
}

std::string Encode(const ExecutorReply& reply) {
  ByteWriter writer;
  if (const auto* done = std::get_if<RunDone>(&reply)) {
    writer.Put(ReplyTag::kRunDone);
    writer.Put(done->number);
    writer.Put(done->run_ns);
  } else if (const auto* device = std::get_if<DeviceReply>(&reply)) {
    writer.Put(ReplyTag::kDevice);
    writer.Put(device->number);
    Put(writer, device->reading);
  } else if (const auto* canary = std::get_if<CanaryReply>(&reply)) {
    writer.Put(ReplyTag::kCanary);
    writer.Put(canary->number);
    writer.Put(static_cast<std::uint8_t>(canary->reading ? 1 : 0));
    if (canary->reading) Put(writer, *canary->reading);
  } else if (const auto* timed = std::get_if<Timed>(&reply)) {
    writer.Put(ReplyTag::kTimed);
    writer.Put(timed->number);
    for (const std::uint64_t ns : timed->outside.ns) writer.Put(ns);
    Put(writer, timed->samples);
  } else if (const auto* sampled = std::get_if<Sampled>(&reply)) {
    writer.Put(ReplyTag::kSampled);
    writer.Put(sampled->number);
    writer.Put(sampled->samples.runs);
    writer.Put(sampled->samples.processor_ns);
    writer.Put(std::uint64_t{sampled->samples.offsets.size()});
    for (const std::uint32_t offset : sampled->samples.offsets) writer.Put(offset);
  } else if (const auto* crashed = std::get_if<Crashed>(&reply)) {
    writer.Put(ReplyTag::kCrashed);
    writer.Put(crashed->signal);
  } else {
    writer.Put(ReplyTag::kForbiddenCall);
    writer.Put(std::get<ForbiddenCall>(reply).system_call);
  }
  return writer.Take();
}

std::optional<ExecutorReply> DecodeExecutorReply(std::string_view bytes) {
  ByteReader reader(bytes);
  ExecutorReply reply;
  if (const auto forbidden = DecodeForbiddenCall(bytes)) return *forbidden;
  switch (reader.GetEnum(ReplyTag::kSampled)) {
    case ReplyTag::kRunDone: {
      RunDone done;
      done.number = reader.Get<std::uint64_t>();
      done.run_ns = reader.Get<double>();
      if (!std::isfinite(done.run_ns) || done.run_ns < 0) return std::nullopt;
      reply = done;
      break;
    }
    case ReplyTag::kForbiddenCall: return std::nullopt;  // handled above
    case ReplyTag::kCrashed: {
      constexpr std::int32_t kLastSignal = 64;
      const Crashed crashed{.signal = reader.Get<std::int32_t>()};
      if (crashed.signal < 1 || crashed.signal > kLastSignal) return std::nullopt;
      reply = crashed;
      break;
    }
    case ReplyTag::kTimed: {
      Timed timed;
      timed.number = reader.Get<std::uint64_t>();
      for (std::uint64_t& ns : timed.outside.ns) ns = reader.Get<std::uint64_t>();
      std::optional<Samples> samples = GetSamples(reader);
      if (!samples) return std::nullopt;
      timed.samples = *std::move(samples);
      reply = std::move(timed);
      break;
    }
    case ReplyTag::kDevice: {
      DeviceReply device;
      device.number = reader.Get<std::uint64_t>();
      std::optional<DeviceReading> reading = GetDeviceReading(reader);
      if (!reading) return std::nullopt;
      device.reading = *std::move(reading);
      reply = std::move(device);
      break;
    }
    case ReplyTag::kCanary: {
      CanaryReply canary;
      canary.number = reader.Get<std::uint64_t>();
      if (reader.Get<std::uint8_t>() != 0) {
        canary.reading = GetCanaryReading(reader);
        if (!canary.reading) return std::nullopt;
      }
      reply = canary;
      break;
    }
    case ReplyTag::kSampled: {
      Sampled sampled;
      sampled.number = reader.Get<std::uint64_t>();
      sampled.samples.runs = reader.Get<std::uint64_t>();
      sampled.samples.processor_ns = reader.Get<std::uint64_t>();
      sampled.samples.offsets.resize(reader.GetCount(kMostCodeSamples));
      for (std::uint32_t& offset : sampled.samples.offsets) offset = reader.Get<std::uint32_t>();
      if (sampled.samples.runs == 0) return std::nullopt;
      reply = std::move(sampled);
      break;
    }
  }
  if (!reader.AtEnd()) return std::nullopt;
  return reply;
}

}  // namespace loopfleet::worker
