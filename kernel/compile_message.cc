#include "kernel/compile_message.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace loopfleet {
namespace {

// The bounds of common/wire/bounds.h on what goes into an outcome.
constexpr std::size_t kMaxNotes = 256;
constexpr std::size_t kMaxNoteBytes = 64;
constexpr std::size_t kMaxFailureTextBytes = 4096;

constexpr std::size_t kMostFused = 1024;

std::vector<BufferSpec> TensorsOf(const looptree::Program& program) {
  std::vector<BufferSpec> specs;
  const auto add = [&](const std::vector<looptree::NodeId>& nodes, BufferSpec::Role role) {
    for (const looptree::NodeId node : nodes) {
      specs.push_back(
          {.role = role, .element_count = static_cast<std::uint64_t>(program.ElementCount(node))});
    }
  };
  add(program.inputs, BufferSpec::Role::kInput);
  add(program.outputs, BufferSpec::Role::kOutput);
  return specs;
}

}  // namespace

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, OutsideFunctions>& outside) {
  archive(outside.addresses);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, Instrumentation>& instrumentation) {
  archive.Enum(instrumentation.kind, Instrumentation::Kind::kLines);
  archive.List(instrumentation.loops, kMostProbeSites);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CompileRequest>& request) {
  archive(request.code_address, request.max_code_bytes, request.threads, request.outside,
          request.instrumentation, request.ir);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, ProfilePlace>& place) {
  archive(place.ref);
  archive.Enum(place.part, ProfilePart::kOutside);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, ProbeSite>& site) {
  archive(site.place, site.parent, site.entries, site.is_root);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, ProbeCells>& cells) {
  archive(cells.offset);
  archive.List(cells.sites, kMostProbeSites);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CodeSpan>& span) {
  archive(span.begin, span.place);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, ProfileMap>& map) {
  archive(map.probes);
  archive.List(map.spans, kMostCodeSpans);
  archive.List(map.fused, kMostFused);
  archive.List(map.launch_roots, kMostLaunches);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, BufferSpec>& buffer) {
  archive.Enum(buffer.role, BufferSpec::Role::kScratch);
  archive(buffer.element_count);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CompiledKernel>& compiled) {
  auto& kernel = compiled.kernel;
  archive(compiled.code.bytes, compiled.code.entry, kernel.object);
  archive.List(kernel.buffers, kMaxKernelBuffers);
  archive(kernel.scratch_bytes, kernel.threads, kernel.vector_bytes);
  archive.List(kernel.notes, kMaxNotes);
  if constexpr (Archive::kReads) {
    for (std::string& note : kernel.notes) note.resize(std::min(note.size(), kMaxNoteBytes));
  }
  archive(kernel.profile);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, Failure>& failure) {
  auto number = static_cast<std::uint16_t>(failure.code);
  archive(number);
  archive.Text(failure.message, kMaxFailureTextBytes);
  if constexpr (Archive::kReads) {
    const std::optional<FailureCode> code = FailureCodeOf(number);
    archive.Require([&] { return code.has_value(); });
    failure.code = code.value_or(FailureCode{});
  }
}

template void Fields<ByteWriter>(ByteWriter&, const BufferSpec&);
template void Fields<ByteReader>(ByteReader&, BufferSpec&);
template void Fields<ByteWriter>(ByteWriter&, const CompileRequest&);
template void Fields<ByteReader>(ByteReader&, CompileRequest&);
template void Fields<ByteWriter>(ByteWriter&, const CompiledKernel&);
template void Fields<ByteReader>(ByteReader&, CompiledKernel&);
template void Fields<ByteWriter>(ByteWriter&, const Failure&);
template void Fields<ByteReader>(ByteReader&, Failure&);

std::string Encode(const CompileRequest& request) { return EncodeBytes(request); }
std::optional<CompileRequest> DecodeCompileRequest(std::string_view bytes) {
  return DecodeBytes<CompileRequest>(bytes);
}
std::string EncodeCompileReply(const CompileReply& reply) { return EncodeBytes(reply); }
std::optional<CompileReply> DecodeCompileReply(std::string_view bytes) {
  return DecodeBytes<CompileReply>(bytes);
}

std::optional<Failure> CheckBuffers(const Kernel& kernel, const looptree::Program& program) {
  const std::vector<BufferSpec> tensors = TensorsOf(program);
  const auto refuse = [](std::string message) {
    return Failure{.code = FailureCode::kCompileError, .message = std::move(message)};
  };
  if (kernel.buffers.size() < tensors.size() ||
      !std::equal(tensors.begin(), tensors.end(), kernel.buffers.begin())) {
    return refuse("the kernel's buffers do not match its program");
  }
  std::uint64_t scratch = 0;
  for (std::size_t i = tensors.size(); i < kernel.buffers.size(); ++i) {
    const BufferSpec& buffer = kernel.buffers[i];
    if (buffer.role != BufferSpec::Role::kScratch) {
      return refuse("the kernel has more tensors than its program");
    }
    if (__builtin_add_overflow(scratch, buffer.element_count, &scratch)) {
      return refuse("the kernel's scratch does not fit into memory");
    }
  }
  constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40;  // far beyond any limit
  if (scratch > kMostElements) return refuse("the kernel's scratch does not fit into memory");
  return std::nullopt;
}

}  // namespace loopfleet
