#pragma once
// Last words: how a child reports why it ends without a reply: by its exit code, or by a message
// that a signal handler can write. Used by the children and by the daemon.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace loopfleet::worker {

// Exit codes of a child that ends by itself.
inline constexpr int kExitOk = 0;              // its channel was closed
inline constexpr int kExitOutOfMemory = 12;    // an allocation failed
inline constexpr int kExitAborted = 134;       // abort(), where it may not send itself the signal
inline constexpr int kExitNotConfined = 70;    // it could not give up its rights
inline constexpr int kExitForbiddenCall = 31;  // it made a system call that is not allowed
inline constexpr int kExitBadRequest = 76;     // the daemon sent an unreadable request: a bug

// Sent by a child of any role instead of its reply, right before it ends.
struct ForbiddenCall {
  std::int32_t system_call = 0;  // its number on this architecture
};
// Sent by a child that runs kernels instead of its reply, when a signal is about to end it, so that
// the next child need not wait for its end.
struct Crashed {
  std::int32_t signal = 0;  // 1 to 64
};

// A last word is a tag and a number. Its tags share the number space of reply tags
// (child_message.cc).
enum class LastWordTag : std::uint8_t { kCrashed = 4, kForbiddenCall = 0xfc };

// Encode(ForbiddenCall) and Encode(Crashed) for signal handlers. `bytes` has room for
// kLastWordBytes.
inline constexpr std::size_t kLastWordBytes = 5;
void EncodeForbiddenCall(std::int32_t system_call, char* bytes);
void EncodeCrashed(std::int32_t signal, char* bytes);
// nullopt: another message, such as a reply.
std::optional<ForbiddenCall> DecodeForbiddenCall(std::string_view bytes);

}  // namespace loopfleet::worker
