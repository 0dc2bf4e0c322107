#pragma once
// The messages between a client's process and `loopfleet-worker serve`, over a Channel, one at a
// time: a ServeRequest, answered by a ServeReply, or an IsolatedRunRequest, answered by an
// IsolatedRunReply. The server is trusted: it runs as the same user and gives code that will run in
// the client's process.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/job/failure.h"
#include "kernel/compile_message.h"

namespace loopfleet {

enum class VerifyWish : std::uint8_t {
  kNever,  // only compile
  kOnce,   // run it once between guard pages and compare, unless this code was found right before
};

struct ServeRequest {
  CompileRequest compile;
  VerifyWish verify = VerifyWish::kOnce;
};

// Asks to run a tree in a child of the server. Sent with the descriptor of memory that holds the
// inputs and takes the outputs (LayOutTensors); without one, the tree is only compiled.
struct IsolatedRunRequest {
  std::uint32_t threads = 1;
  std::uint64_t memory_size = 0;  // 0: no memory is sent
  std::string ir;
};

using AnyServeRequest = std::variant<ServeRequest, IsolatedRunRequest>;
std::string Encode(const AnyServeRequest& request);
std::optional<AnyServeRequest> DecodeServeRequest(std::string_view bytes);

enum class Verified : std::uint8_t {
  kNo,        // the request asked for no comparison
  kRight,     // it ran between guard pages, and its outputs are those of the reference
  kBefore,    // the same code for the same tree was right before
  kUnjudged,  // it ran between guard pages, but nothing tells whether its outputs are right
};

struct Served {
  CompiledKernel compiled;  // without the object
  std::string code_hash;
  Verified verified = Verified::kNo;
  std::string remark;  // kUnjudged: why
};
// A kernel that is wrong or crashes is a failure: WRONG_OUTPUT, RUN_CRASH ...
using ServeReply = std::expected<Served, Failure>;
std::string EncodeServeReply(const ServeReply& reply);
std::optional<ServeReply> DecodeServeReply(std::string_view bytes);

struct IsolatedRun {
  std::uint64_t scratch_bytes = 0;
};
using IsolatedRunReply = std::expected<IsolatedRun, Failure>;
std::string EncodeIsolatedRunReply(const IsolatedRunReply& reply);
std::optional<IsolatedRunReply> DecodeIsolatedRunReply(std::string_view bytes);

// Where a program's inputs, then its outputs, lie in the memory of an IsolatedRunRequest: offsets
// in bytes, then the whole size.
std::vector<std::size_t> LayOutTensors(const looptree::Program& program);

}  // namespace loopfleet
