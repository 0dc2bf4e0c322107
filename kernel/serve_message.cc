#include "kernel/serve_message.h"

#include <utility>

namespace loopfleet {
namespace {

enum class ServeTag : std::uint8_t { kServed, kFailure };

}  // namespace

std::string Encode(const ServeRequest& request) {
  ByteWriter writer;
  Put(writer, request.compile);
  writer.Put(request.verify);
  return writer.Take();
}

std::optional<ServeRequest> DecodeServeRequest(std::string_view bytes) {
  ByteReader reader(bytes);
  ServeRequest request;
  request.compile = GetCompileRequest(reader);
  request.verify = reader.GetEnum(VerifyWish::kOnce);
  if (!reader.AtEnd()) return std::nullopt;
  return request;
}

std::string EncodeServeReply(const ServeReply& reply) {
  ByteWriter writer;
  if (!reply) {
    writer.Put(ServeTag::kFailure);
    Put(writer, reply.error());
    return writer.Take();
  }
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

}  // namespace loopfleet
