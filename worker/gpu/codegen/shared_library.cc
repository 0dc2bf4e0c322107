#include "worker/gpu/codegen/shared_library.h"

#include <dlfcn.h>

namespace loopfleet::worker {

Result<SharedLibrary> SharedLibrary::Open(std::span<const std::string> places) {
  std::string problem;
  for (const std::string& place : places) {
    if (void* const handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return SharedLibrary(handle);
    }
    problem = ::dlerror();
  }
  return Fail(ErrorKind::kNotFound, problem);
}

void* SharedLibrary::Symbol(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace loopfleet::worker
