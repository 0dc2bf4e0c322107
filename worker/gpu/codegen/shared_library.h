#pragma once
// SharedLibrary: a library of the host, opened at run time. It stays open until the process ends,
// because NVIDIA's libraries run threads of their own.

#include <span>
#include <string>

#include "common/base/result.h"

namespace loopfleet::worker {

class SharedLibrary {
 public:
  // Opens the first of `places` (names or paths) that can be opened. kNotFound, with the loader's
  // message for the last of them.
  static Result<SharedLibrary> Open(std::span<const std::string> places);

  // Null: no such symbol.
  void* Symbol(const char* name) const;
  // False: no such function, and `function` is null.
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
