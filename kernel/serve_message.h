#pragma once
// The messages between a client's process and `loopfleet-worker serve`, over a Channel: a
// ServeRequest, answered by a ServeReply, one at a time. The server is trusted: it runs as the same
// user and gives code that will run in the client's process.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

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
std::string Encode(const ServeRequest& request);
std::optional<ServeRequest> DecodeServeRequest(std::string_view bytes);

enum class Verified : std::uint8_t {
  kNo,        // as wished
  kRight,     // now
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

}  // namespace loopfleet
