#pragma once
// SharedLibrary: a library of the host's that is opened at run time, and stays open until the
// process ends: NVIDIA's have threads of their own.

#include <span>
#include <string>

#include "common/base/result.h"

namespace loopfleet::worker {

class SharedLibrary {
 public:
  // The first of `places` (names or paths) that can be opened. kNotFound, with the loader's words
  // for the last of them.
  static Result<SharedLibrary> Open(std::span<const std::string> places);

  // Null: it has no such symbol.
  void* Symbol(const char* name) const;
  // False: it has no such function, and `function` is null.
  template <class Function>
  bool Find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(Symbol(name));
    return function != nullptr;
  }

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace loopfleet::worker
