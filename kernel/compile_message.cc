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

enum class CompileTag : std::uint8_t { kKernel, kFailure };

constexpr std::size_t kMostFused = 1024;

void Put(ByteWriter& writer, const Instrumentation& instrumentation) {
  writer.Put(instrumentation.kind);
  writer.Put(std::uint64_t{instrumentation.loops.size()});
  for (const looptree::TreeRef loop : instrumentation.loops) writer.Put(loop);
}

Instrumentation GetInstrumentation(ByteReader& reader) {
  Instrumentation instrumentation{.kind = reader.GetEnum(Instrumentation::Kind::kLines),
                                  .loops = {}};
  for (std::size_t left = reader.GetCount(kMostProbeSites); left > 0; --left) {
    instrumentation.loops.insert(reader.Get<looptree::TreeRef>());
  }
  return instrumentation;
}

void Put(ByteWriter& writer, const ProfilePlace& place) {
  writer.Put(place.ref);
  writer.Put(place.part);
}

ProfilePlace GetPlace(ByteReader& reader) {
  const auto ref = reader.Get<looptree::TreeRef>();
  return {.ref = ref, .part = reader.GetEnum(ProfilePart::kOutside)};
}

void Put(ByteWriter& writer, const ProfileMap& map) {
  writer.Put(static_cast<std::uint8_t>(map.probes.has_value()));
  if (map.probes) {
    writer.Put(map.probes->offset);
    writer.Put(std::uint64_t{map.probes->sites.size()});
    for (const ProbeSite& site : map.probes->sites) {
      Put(writer, site.place);
      writer.Put(site.parent);
      writer.Put(site.entries);
      writer.Put(static_cast<std::uint8_t>(site.is_root));
    }
  }
  writer.Put(std::uint64_t{map.spans.size()});
  for (const CodeSpan& span : map.spans) {
    writer.Put(span.begin);
    Put(writer, span.place);
  }
  writer.Put(std::uint64_t{map.fused.size()});
  for (const auto& [ref, into] : map.fused) {
    writer.Put(ref);
    writer.Put(into);
  }
}

ProfileMap GetProfileMap(ByteReader& reader) {
  ProfileMap map;
  if (reader.Get<std::uint8_t>() != 0) {
    map.probes.emplace().offset = reader.Get<std::uint64_t>();
    map.probes->sites.resize(reader.GetCount(kMostProbeSites));
    for (ProbeSite& site : map.probes->sites) {
      site.place = GetPlace(reader);
      site.parent = reader.Get<std::uint32_t>();
      site.entries = reader.Get<double>();
      site.is_root = reader.Get<std::uint8_t>() != 0;
    }
  }
  map.spans.resize(reader.GetCount(kMostCodeSpans));
  for (CodeSpan& span : map.spans) {
    span.begin = reader.Get<std::int64_t>();
    span.place = GetPlace(reader);
  }
  map.fused.resize(reader.GetCount(kMostFused));
  for (auto& [ref, into] : map.fused) {
    ref = reader.Get<looptree::TreeRef>();
    into = reader.Get<looptree::TreeRef>();
  }
  return map;
}

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

void Put(ByteWriter& writer, const CompileRequest& request) {
  writer.Put(request.code_address);
  writer.Put(request.max_code_bytes);
  writer.Put(request.threads);
  writer.Put(static_cast<std::uint8_t>(request.outside.has_value()));
  if (request.outside) {
    for (const std::uint64_t address : request.outside->addresses) writer.Put(address);
  }
  Put(writer, request.instrumentation);
  writer.PutText(request.ir);
}

CompileRequest GetCompileRequest(ByteReader& reader) {
  CompileRequest request;
  request.code_address = reader.Get<std::uint64_t>();
  request.max_code_bytes = reader.Get<std::uint64_t>();
  request.threads = reader.Get<std::uint32_t>();
  if (reader.Get<std::uint8_t>() != 0) {
    for (std::uint64_t& address : request.outside.emplace().addresses) {
      address = reader.Get<std::uint64_t>();
    }
  }
  request.instrumentation = GetInstrumentation(reader);
  request.ir = reader.GetText();
  return request;
}

std::string Encode(const CompileRequest& request) {
  ByteWriter writer;
  Put(writer, request);
  return writer.Take();
}

std::optional<CompileRequest> DecodeCompileRequest(std::string_view bytes) {
  ByteReader reader(bytes);
  CompileRequest request = GetCompileRequest(reader);
  if (!reader.AtEnd()) return std::nullopt;
  return request;
}

void Put(ByteWriter& writer, const CompiledKernel& compiled) {
  writer.PutText(compiled.code.bytes);
  writer.Put(compiled.code.entry);
  const Kernel& kernel = compiled.kernel;
  writer.PutText(kernel.object);
  writer.Put(std::uint64_t{kernel.buffers.size()});
  for (const BufferSpec& buffer : kernel.buffers) {
    writer.Put(buffer.role);
    writer.Put(buffer.element_count);
  }
  writer.Put(kernel.scratch_bytes);
  writer.Put(kernel.threads);
  writer.Put(std::uint64_t{kernel.notes.size()});
  for (const std::string& annotation : kernel.notes) writer.PutText(annotation);
  Put(writer, kernel.profile);
}

CompiledKernel GetCompiledKernel(ByteReader& reader) {
  CompiledKernel compiled;
  compiled.code.bytes = reader.GetText();
  compiled.code.entry = reader.Get<std::uint64_t>();
  Kernel& kernel = compiled.kernel;
  kernel.object = reader.GetText();
  kernel.buffers.resize(reader.GetCount(kMaxKernelBuffers));
  for (BufferSpec& buffer : kernel.buffers) {
    buffer.role = reader.GetEnum(BufferSpec::Role::kScratch);
    buffer.element_count = reader.Get<std::uint64_t>();
  }
  kernel.scratch_bytes = reader.Get<std::uint64_t>();
  kernel.threads = reader.Get<std::uint32_t>();
  kernel.notes.resize(reader.GetCount(kMaxNotes));
  for (std::string& annotation : kernel.notes) {
    annotation = reader.GetText().substr(0, kMaxNoteBytes);
  }
  kernel.profile = GetProfileMap(reader);
  return compiled;
}

void Put(ByteWriter& writer, const Failure& failure) {
  writer.Put(static_cast<std::uint16_t>(failure.code));
  writer.PutText(failure.message);
}

std::optional<Failure> GetFailure(ByteReader& reader) {
  const std::optional<FailureCode> code = FailureCodeOf(reader.Get<std::uint16_t>());
  Failure failure;
  failure.message = reader.GetText().substr(0, kMaxFailureTextBytes);
  if (!code) return std::nullopt;
  failure.code = *code;
  return failure;
}

std::string EncodeCompileReply(const CompileReply& reply) {
  ByteWriter writer;
  if (reply) {
    writer.Put(CompileTag::kKernel);
    Put(writer, *reply);
  } else {
    writer.Put(CompileTag::kFailure);
    Put(writer, reply.error());
  }
  return writer.Take();
}

std::optional<CompileReply> DecodeCompileReply(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.GetEnum(CompileTag::kFailure) == CompileTag::kFailure) {
    std::optional<Failure> failure = GetFailure(reader);
    if (!failure || !reader.AtEnd()) return std::nullopt;
    return std::unexpected(*std::move(failure));
  }
  CompiledKernel kernel = GetCompiledKernel(reader);
  if (!reader.AtEnd()) return std::nullopt;
  return kernel;
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
