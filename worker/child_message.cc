#include "worker/child_message.h"

#include <utility>

#include "common/wire/bounds.h"
#include "worker/byte_codec.h"
#include "worker/timing/timing_message.h"

namespace loopfleet::worker {
namespace {

enum class CompileTag : std::uint8_t { kKernel, kFailure };
enum class RequestTag : std::uint8_t { kLoad, kRun, kTime };
enum class ReplyTag : std::uint8_t { kRunDone, kSamples, kLoadFailed };

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

Kernel GetKernel(ByteReader& reader) {
  Kernel kernel;
  kernel.object = reader.GetText();
  kernel.buffers.resize(reader.GetCount(kMaxKernelBuffers));
  for (BufferSpec& buffer : kernel.buffers) {
    buffer.role = reader.GetEnum(BufferSpec::Role::kScratch);
    buffer.element_count = reader.Get<std::uint64_t>();
  }
  kernel.scratch_bytes = reader.Get<std::uint64_t>();
  kernel.no_effect.resize(reader.GetCount(wire::kMaxNotes));
  for (std::string& annotation : kernel.no_effect) {
    annotation = reader.GetText().substr(0, wire::kMaxNoteBytes);
  }
  return kernel;
}

// nullopt: a code that there is not.
std::optional<Failure> GetFailure(ByteReader& reader) {
  const std::optional<FailureCode> code = FailureCodeOf(reader.Get<std::uint16_t>());
  Failure failure;
  failure.message = reader.GetText().substr(0, wire::kMaxFailureTextBytes);
  if (!code) return std::nullopt;
  failure.code = *code;
  return failure;
}

}  // namespace

std::string EncodeCompileReply(const CompileReply& reply) {
  ByteWriter writer;
  if (!reply) {
    writer.Put(CompileTag::kFailure);
    writer.Put(static_cast<std::uint16_t>(reply.error().code));
    writer.PutText(reply.error().message);
    return writer.Take();
  }
  writer.Put(CompileTag::kKernel);
  writer.PutText(reply->object);
  writer.Put(std::uint64_t{reply->buffers.size()});
  for (const BufferSpec& buffer : reply->buffers) {
    writer.Put(buffer.role);
    writer.Put(buffer.element_count);
  }
  writer.Put(reply->scratch_bytes);
  writer.Put(std::uint64_t{reply->no_effect.size()});
  for (const std::string& annotation : reply->no_effect) writer.PutText(annotation);
  return writer.Take();
}

std::optional<CompileReply> DecodeCompileReply(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.GetEnum(CompileTag::kFailure) == CompileTag::kFailure) {
    std::optional<Failure> failure = GetFailure(reader);
    if (!failure || !reader.AtEnd()) return std::nullopt;
    return std::unexpected(*std::move(failure));
  }
  Kernel kernel = GetKernel(reader);
  if (!reader.AtEnd()) return std::nullopt;
  return kernel;
}

std::string Encode(const ExecutorRequest& request) {
  ByteWriter writer;
  if (const auto* load = std::get_if<LoadRequest>(&request)) {
    writer.Put(RequestTag::kLoad);
    writer.PutText(load->object);
    writer.Put(load->workload_place);
    writer.Put(load->attached.inputs_size);
    writer.Put(load->attached.arena_size);
    PutBuffers(writer, load->inputs);
    PutBuffers(writer, load->others);
    writer.Put(load->time_limit_s);
  } else if (const auto* run = std::get_if<RunRequest>(&request)) {
    writer.Put(RequestTag::kRun);
    writer.Put(run->time_limit_s);
  } else {
    const auto& time = std::get<TimeRequest>(request);
    writer.Put(RequestTag::kTime);
    Put(writer, time.policy);
    writer.Put(time.time_limit_s);
  }
  return writer.Take();
}

std::optional<ExecutorRequest> DecodeExecutorRequest(std::string_view bytes) {
  ByteReader reader(bytes);
  ExecutorRequest request;
  switch (reader.GetEnum(RequestTag::kTime)) {
    case RequestTag::kLoad: {
      LoadRequest load;
      load.object = reader.GetText();
      load.workload_place = reader.Get<std::uint32_t>();
      load.attached.inputs_size = reader.Get<std::uint64_t>();
      load.attached.arena_size = reader.Get<std::uint64_t>();
      load.inputs = GetBuffers(reader);
      load.others = GetBuffers(reader);
      load.time_limit_s = reader.Get<std::uint64_t>();
      request = std::move(load);
      break;
    }
    case RequestTag::kRun: request = RunRequest{.time_limit_s = reader.Get<std::uint64_t>()}; break;
    case RequestTag::kTime: {
      TimeRequest time;
      time.policy = GetPolicy(reader);
      time.time_limit_s = reader.Get<std::uint64_t>();
      request = time;
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
    writer.Put(done->run_ns);
  } else if (const auto* samples = std::get_if<Samples>(&reply)) {
    writer.Put(ReplyTag::kSamples);
    Put(writer, *samples);
  } else {
    writer.Put(ReplyTag::kLoadFailed);
    writer.PutText(std::get<LoadFailed>(reply).message);
  }
  return writer.Take();
}

std::optional<ExecutorReply> DecodeExecutorReply(std::string_view bytes) {
  ByteReader reader(bytes);
  ExecutorReply reply;
  switch (reader.GetEnum(ReplyTag::kLoadFailed)) {
    case ReplyTag::kRunDone: reply = RunDone{.run_ns = reader.Get<std::uint64_t>()}; break;
    case ReplyTag::kSamples: {
      std::optional<Samples> samples = GetSamples(reader);
      if (!samples) return std::nullopt;
      reply = *std::move(samples);
      break;
    }
    case ReplyTag::kLoadFailed:
      reply = LoadFailed{std::string(reader.GetText().substr(0, wire::kMaxFailureTextBytes))};
      break;
  }
  if (!reader.AtEnd()) return std::nullopt;
  return reply;
}

}  // namespace loopfleet::worker
