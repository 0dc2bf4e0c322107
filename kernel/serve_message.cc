#include "kernel/serve_message.h"

namespace loopfleet {
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, ServeRequest>& request) {
  archive(request.compile);
  archive.Enum(request.verify, VerifyWish::kOnce);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, IsolatedRunRequest>& request) {
  archive(request.threads, request.memory_size, request.ir);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, Served>& served) {
  archive(served.compiled, served.code_hash);
  archive.Enum(served.verified, Verified::kUnjudged);
  archive(served.remark);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, IsolatedRun>& done) {
  archive(done.scratch_bytes);
}

std::string Encode(const AnyServeRequest& request) { return EncodeBytes(request); }
std::optional<AnyServeRequest> DecodeServeRequest(std::string_view bytes) {
  return DecodeBytes<AnyServeRequest>(bytes);
}
std::string EncodeServeReply(const ServeReply& reply) { return EncodeBytes(reply); }
std::optional<ServeReply> DecodeServeReply(std::string_view bytes) {
  return DecodeBytes<ServeReply>(bytes);
}
std::string EncodeIsolatedRunReply(const IsolatedRunReply& reply) { return EncodeBytes(reply); }
std::optional<IsolatedRunReply> DecodeIsolatedRunReply(std::string_view bytes) {
  return DecodeBytes<IsolatedRunReply>(bytes);
}

std::vector<std::size_t> LayOutTensors(const looptree::Program& program) {
  constexpr std::size_t kLine = 64;
  std::vector<std::size_t> offsets = {0};
  for (const auto* const nodes : {&program.inputs, &program.outputs}) {
    for (const looptree::NodeId node : *nodes) {
      const std::size_t bytes =
          static_cast<std::size_t>(program.ElementCount(node)) * sizeof(float);
      offsets.push_back(offsets.back() + (bytes + kLine - 1) / kLine * kLine);
    }
  }
  return offsets;
}

}  // namespace loopfleet
