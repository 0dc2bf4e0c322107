#pragma once
// What is sent to a compiler and comes back: a tree as IR text, and the kernel linked for a place.
// Used between the worker's daemon and its compiler children, and between a client's process and
// `loopfleet-worker serve`. Both sides are one build on one host. Decoding a reply checks every
// bound and returns nullopt for junk.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "common/job/failure.h"
#include "common/looptree/program/program.h"
#include "kernel/byte_codec.h"
#include "kernel/kernel.h"
#include "kernel/outside_functions.h"

namespace loopfleet {

inline constexpr std::size_t kMaxRequestBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxCompileReplyBytes = std::size_t{64} << 20;  // mostly the object
inline constexpr std::size_t kMaxKernelBuffers = 1024;

struct CompileRequest {
  std::uint64_t code_address = 0;  // the address that the code is linked for
  std::uint64_t max_code_bytes = 0;
  std::uint32_t threads = 1;  // the most that the kernel may use
  Instrumentation instrumentation = {};
  // Of the process that will run the code. None: those of the compiler, as for its siblings.
  std::optional<OutsideFunctions> outside = std::nullopt;
  std::string ir;  // the tree's IR text
};
std::string Encode(const CompileRequest& request);
std::optional<CompileRequest> DecodeCompileRequest(std::string_view bytes);

struct CompiledKernel {
  Kernel kernel;
  CodeImage code;
};
using CompileReply = std::expected<CompiledKernel, Failure>;
std::string EncodeCompileReply(const CompileReply& reply);
std::optional<CompileReply> DecodeCompileReply(std::string_view bytes);

// For messages that contain these. Of a failure its code and its text travel.
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CompileRequest>& request);
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CompiledKernel>& compiled);
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, BufferSpec>& buffer);
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, Failure>& failure);

// Returns a failure unless the kernel's buffers are those of `program`. A compiler that got them
// wrong cannot be trusted with where the kernel writes.
std::optional<Failure> CheckBuffers(const Kernel& kernel, const looptree::Program& program);

}  // namespace loopfleet
