#pragma once
// Last words: what a child says when it ends without an answer, by its exit code or by a message
// that a signal handler can write. Shared by the children, which say them, and the daemon.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace loopfleet::worker {

// Exit codes by which a child says why it gives up.
inline constexpr int kExitOk = 0;              // its channel was closed
inline constexpr int kExitOutOfMemory = 12;    // an allocation failed
inline constexpr int kExitNotConfined = 70;    // it could not give up its rights
inline constexpr int kExitForbiddenCall = 31;  // it made a system call that is not allowed
inline constexpr int kExitBadRequest = 76;     // the daemon sent what cannot be read: a bug

// Sent by a child of any kind in the place of its reply, right before it ends.
struct ForbiddenCall {
  std::int32_t system_call = 0;  // its number on this architecture
};
// Sent by a child that runs kernels in the place of its reply, when a signal is about to end it: so
// the next one need not wait until this one has gone.
struct Crashed {
  std::int32_t signal = 0;  // 1 to 64
};

// A last word is its tag and a number. The tags are among those of replies (child_message.cc).
enum class LastWordTag : std::uint8_t { kCrashed = 4, kForbiddenCall = 0xfc };

// Encode(ForbiddenCall) and Encode(Crashed) for signal handlers; `bytes` has room for so many.
inline constexpr std::size_t kLastWordBytes = 5;
void EncodeForbiddenCall(std::int32_t system_call, char* bytes);
void EncodeCrashed(std::int32_t signal, char* bytes);
// The same message among the compiler's replies.
std::optional<ForbiddenCall> DecodeForbiddenCall(std::string_view bytes);

}  // namespace loopfleet::worker
