#include "kernel/serve_message.h"

#include <utility>

namespace loopfleet {
namespace {

enum class RequestTag : std::uint8_t { kServe, kRun };
enum class ServeTag : std::uint8_t { kServed, kFailure };

template <class Reply>
std::string EncodeFailure(const std::expected<Reply, Failure>& reply) {
  ByteWriter writer;
  writer.Put(ServeTag::kFailure);
  Put(writer, reply.error());
  return writer.Take();
}

}  // namespace

std::string Encode(const ServeRequest& request) {
  ByteWriter writer;
  writer.Put(RequestTag::kServe);
  Put(writer, request.compile);
  writer.Put(request.verify);
  return writer.Take();
}

std::string Encode(const IsolatedRunRequest& request) {
  ByteWriter writer;
  writer.Put(RequestTag::kRun);
  writer.Put(request.threads);
  writer.Put(request.memory_size);
  writer.PutText(request.ir);
  return writer.Take();
}

std::optional<AnyServeRequest> DecodeServeRequest(std::string_view bytes) {
  ByteReader reader(bytes);
  AnyServeRequest any;
  if (reader.GetEnum(RequestTag::kRun) == RequestTag::kServe) {
    auto& request = any.emplace<ServeRequest>();
    request.compile = GetCompileRequest(reader);
    request.verify = reader.GetEnum(VerifyWish::kOnce);
  } else {
    auto& request = any.emplace<IsolatedRunRequest>();
    request.threads = reader.Get<std::uint32_t>();
    request.memory_size = reader.Get<std::uint64_t>();
    request.ir = reader.GetText();
  }
  if (!reader.AtEnd()) return std::nullopt;
  return any;
}

std::string EncodeServeReply(const ServeReply& reply) {
  if (!reply) return EncodeFailure(reply);
  ByteWriter writer;
  writer.Put(ServeTag::kServed);
  Put(writer, reply->compiled);
  writer.PutText(reply->code_hash);
  writer.Put(reply->verified);
  writer.PutText(reply->remark);
  return writer.Take();
}

std::optional<ServeReply> DecodeServeReply(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.GetEnum(ServeTag::kFailure) == ServeTag::kFailure) {
    std::optional<Failure> failure = GetFailure(reader);
    if (!failure || !reader.AtEnd()) return std::nullopt;
    return std::unexpected(*std::move(failure));
  }
  Served served;
  served.compiled = GetCompiledKernel(reader);
  served.code_hash = reader.GetText();
  served.verified = reader.GetEnum(Verified::kUnjudged);
  served.remark = reader.GetText();
  if (!reader.AtEnd()) return std::nullopt;
  return served;
}

std::string EncodeIsolatedRunReply(const IsolatedRunReply& reply) {
  if (!reply) return EncodeFailure(reply);
  ByteWriter writer;
  writer.Put(ServeTag::kServed);
  writer.Put(reply->scratch_bytes);
  return writer.Take();
}

std::optional<IsolatedRunReply> DecodeIsolatedRunReply(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.GetEnum(ServeTag::kFailure) == ServeTag::kFailure) {
    std::optional<Failure> failure = GetFailure(reader);
    if (!failure || !reader.AtEnd()) return std::nullopt;
    return std::unexpected(*std::move(failure));
  }
  IsolatedRun done{.scratch_bytes = reader.Get<std::uint64_t>()};
  if (!reader.AtEnd()) return std::nullopt;
  return done;
}

std::vector<std::size_t> LayOutTensors(const looptree::Program& program) {
  constexpr std::size_t kLine = 64;
  std::vector<std::size_t> offsets = {0};
  for (const auto* const nodes : {&program.inputs, &program.outputs}) {
    for (const looptree::NodeId node : *nodes) {
      const std::size_t bytes = static_cast<std::size_t>(program.ElementCount(node)) * sizeof(float);
      offsets.push_back(offsets.back() + (bytes + kLine - 1) / kLine * kLine);
    }
  }
  return offsets;
}

}  // namespace loopfleet
