#pragma once
// Result<T>: how an operation of ours says that it failed. A job's failure is not an Error (it is
// data, job/failure.h), and a bug is neither (base/check.h).

#include <expected>
#include <string>
#include <utility>

namespace loopfleet {

enum class ErrorKind {
  kInvalid,      // the caller gave something that can never work
  kNotFound,     // what was named is not there
  kExists,       // what was to be made is there already, with other content
  kUnavailable,  // the other side cannot be reached now; trying again may help
  kTimeout,      // it took longer than the caller allowed
  kCorrupt,      // stored or received bytes are not what they claim to be
  kFull,         // a bound was reached: disk, queue, quota
  kClosed,       // the thing was shut down
  kSystem,       // the operating system or a library refused
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

// LF_TRY_VOID(F()): go on, or return F's error from the enclosing function.
#define LF_TRY_VOID(expression)                                                       \
  do {                                                                                \
    auto lf_status = (expression);                                                    \
    if (!lf_status.has_value()) return std::unexpected(std::move(lf_status).error()); \
  } while (false)
