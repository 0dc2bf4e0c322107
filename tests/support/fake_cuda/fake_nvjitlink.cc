// nvJitLink, as tests have it: its cubin is the PTX with a mark before it, which only the fake
// driver takes.

#include <cstring>
#include <string>

// NOLINTBEGIN: the names are NVIDIA's
namespace {
struct Linking {
  std::string cubin = "\177ELF loopfleet fake cubin\n";
};
}  // namespace

extern "C" {

int nvJitLinkVersion(unsigned* major, unsigned* minor) {
  *major = 0;
  *minor = 0;
  return 0;
}
int nvJitLinkCreate(void** handle, unsigned, const char**) {
  *handle = new Linking();
  return 0;
}
int nvJitLinkDestroy(void** handle) {
  delete static_cast<Linking*>(*handle);
  *handle = nullptr;
  return 0;
}
int nvJitLinkAddData(void* handle, int, const void* data, std::size_t size, const char*) {
  static_cast<Linking*>(handle)->cubin.append(static_cast<const char*>(data), size);
  return 0;
}
int nvJitLinkComplete(void*) { return 0; }
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
