// A fake nvJitLink. Its cubin is the PTX after a mark, which only the fake driver accepts. If
// LOOPFLEET_REAL_NVJITLINK names the real library, that assembles the PTX too, and this one fails
// if it does: this shows that the real library works in the same environment. Like the real one, it
// opens the driver at each link, and works without one.

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

// Opens the real library when this one is loaded, as a program that links it would.
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
