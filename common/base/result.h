#pragma once
// Result<T>: a value, or the Error of the operation that failed. A job's failure is not an Error
// but data (job/failure.h); a bug is neither (base/check.h).

#include <expected>
#include <string>
#include <utility>

namespace loopfleet {

enum class ErrorKind {
  kInvalid,      // the argument can never work
  kNotFound,     // the named thing does not exist
  kExists,       // the thing to be created exists already, with other content
  kUnavailable,  // the peer cannot be reached now; a retry may help
  kTimeout,      // the operation took longer than the caller allowed
  kCorrupt,      // stored or received bytes are not what they claim to be
  kFull,         // a limit was reached: disk, queue, quota
  kClosed,       // the object was shut down
  kSystem,       // the operating system or a library failed
};

struct Error {
  ErrorKind kind = ErrorKind::kSystem;
  std::string message;  // one line, complete: what was tried, on what, and what to do
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> Fail(ErrorKind kind, std::string message) {
  return std::unexpected(Error{kind, std::move(message)});
}

}  // namespace loopfleet

#define LF_CONCAT_INNER(a, b) a##b
#define LF_CONCAT(a, b) LF_CONCAT_INNER(a, b)

// LF_TRY(auto x, F()): x = *F(), or return F's error from the enclosing function.
#define LF_TRY(declaration, expression) \
  LF_TRY_INNER(declaration, expression, LF_CONCAT(lf_try_, __LINE__))
#define LF_TRY_INNER(declaration, expression, name)                       \
  auto name = (expression);                                               \
  if (!name.has_value()) return std::unexpected(std::move(name).error()); \
  declaration = *std::move(name)

// LF_TRY_VOID(F()): continue, or return F's error from the enclosing function.
#define LF_TRY_VOID(expression)                                                       \
  do {                                                                                \
    auto lf_status = (expression);                                                    \
    if (!lf_status.has_value()) return std::unexpected(std::move(lf_status).error()); \
  } while (false)
