// nvJitLink, as tests have it: its cubin is the PTX with a mark before it, which only the fake
// driver takes. With LOOPFLEET_REAL_NVJITLINK, the path of the real one, it has that assemble the
// PTX, too, and fails where that fails: so it shows that the real one works where this one is
// called from. And as the real one it opens the driver at each link, and does without where it does
// not start.

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

// NOLINTBEGIN: the names are NVIDIA's
namespace {

struct Real {
  int (*create)(void**, unsigned, const char**) = nullptr;
  int (*destroy)(void**) = nullptr;
  int (*add_data)(void*, int, const void*, std::size_t, const char*) = nullptr;
  int (*complete)(void*) = nullptr;
};
struct Linking {
  std::string cubin = "\177ELF loopfleet fake cubin\n";
  void* real = nullptr;
};

// Opened when this library is, as a program that has the real one does.
Real OpenReal() {
  Real real;
  const char* const path = std::getenv("LOOPFLEET_REAL_NVJITLINK");
  if (path == nullptr) return real;
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::abort();
  const auto find = [&](const char* name, auto& function) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
  };
  find("nvJitLinkCreate", real.create);
  find("nvJitLinkDestroy", real.destroy);
  find("nvJitLinkAddData", real.add_data);
  find("nvJitLinkComplete", real.complete);
  return real;
}
const Real real = OpenReal();

}  // namespace

extern "C" {

int nvJitLinkVersion(unsigned* major, unsigned* minor) {
  *major = 0;
  *minor = 0;
  return 0;
}
int nvJitLinkCreate(void** handle, unsigned count, const char** options) {
  if (void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
    if (init != nullptr) init(0);
    ::dlclose(driver);
  }
  auto* const linking = new Linking();
  *handle = linking;
  return real.create == nullptr ? 0 : real.create(&linking->real, count, options);
}
int nvJitLinkDestroy(void** handle) {
  auto* const linking = static_cast<Linking*>(*handle);
  if (linking->real != nullptr) real.destroy(&linking->real);
  delete linking;
  *handle = nullptr;
  return 0;
}
int nvJitLinkAddData(void* handle, int kind, const void* data, std::size_t size, const char* name) {
  auto* const linking = static_cast<Linking*>(handle);
  linking->cubin.append(static_cast<const char*>(data), size);
  return linking->real == nullptr ? 0 : real.add_data(linking->real, kind, data, size, name);
}
int nvJitLinkComplete(void* handle) {
  auto* const linking = static_cast<Linking*>(handle);
  return linking->real == nullptr ? 0 : real.complete(linking->real);
}
int nvJitLinkGetLinkedCubinSize(void* handle, std::size_t* size) {
  *size = static_cast<Linking*>(handle)->cubin.size();
  return 0;
}
int nvJitLinkGetLinkedCubin(void* handle, void* cubin) {
  const std::string& bytes = static_cast<Linking*>(handle)->cubin;
  std::memcpy(cubin, bytes.data(), bytes.size());
  return 0;
}
int nvJitLinkGetErrorLogSize(void*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvJitLinkGetErrorLog(void*, char* text) {
  *text = '\0';
  return 0;
}
int nvJitLinkGetInfoLogSize(void*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvJitLinkGetInfoLog(void*, char* text) {
  *text = '\0';
  return 0;
}

}  // extern "C"
// NOLINTEND
