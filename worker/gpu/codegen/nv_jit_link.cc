// OpenNvJitLink. Declares the few functions of nvJitLink.h that it uses, so that the build needs no
// CUDA header. They have not changed since CUDA 12.0.

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "worker/gpu/codegen/ptx_assembler.h"
#include "worker/gpu/codegen/shared_library.h"

namespace loopfleet::worker {
namespace {

using Handle = struct nvJitLink*;
constexpr int kSuccess = 0;
constexpr int kInputPtx = 2;

struct Functions {
  int (*create)(Handle*, std::uint32_t, const char**) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  int (*add_data)(Handle, int, const void*, std::size_t, const char*) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubin_size)(Handle, std::size_t*) = nullptr;
  int (*cubin)(Handle, void*) = nullptr;
  int (*error_size)(Handle, std::size_t*) = nullptr;
  int (*error)(Handle, char*) = nullptr;
  int (*info_size)(Handle, std::size_t*) = nullptr;
  int (*info)(Handle, char*) = nullptr;
  int (*version)(unsigned*, unsigned*) = nullptr;
};

class NvJitLink final : public PtxAssembler {
 public:
  NvJitLink(const Functions& functions, std::string version)
      : nv_(functions), version_(std::move(version)) {}

  std::string Version() const override { return version_; }

  Result<Cubin> Assemble(std::string_view ptx, GpuArch arch) override {
    const std::string arch_option = "-arch=" + arch.Name();
    std::array<const char*, 2> options = {arch_option.c_str(), "-verbose"};
    Connection connection(nv_);
    const int created = nv_.create(&connection.handle, options.size(), options.data());
    if (created != kSuccess) {
      return Fail(ErrorKind::kInvalid, fmt::format("{} makes no code for {} (error {})", version_,
                                                   arch.Name(), created));
    }
    // nvJitLink expects the text with its terminating null.
    const std::string text(ptx);
    if (nv_.add_data(connection.handle, kInputPtx, text.c_str(), text.size() + 1, "kernel") !=
            kSuccess ||
        nv_.complete(connection.handle) != kSuccess) {
      return Fail(ErrorKind::kInvalid,
                  fmt::format("{} refuses the PTX for {}: {}", version_, arch.Name(),
                              Text(connection.handle, nv_.error_size, nv_.error)));
    }
    std::size_t size = 0;
    Cubin cubin;
    if (nv_.cubin_size(connection.handle, &size) != kSuccess) return NoCubin();
    cubin.bytes.resize(size);
    if (nv_.cubin(connection.handle, cubin.bytes.data()) != kSuccess) return NoCubin();
    cubin.log = Text(connection.handle, nv_.info_size, nv_.info);
    return cubin;
  }

 private:
  struct Connection {
    explicit Connection(const Functions& functions) : nv(functions) {}
    ~Connection() {
      if (handle != nullptr) nv.destroy(&handle);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    const Functions& nv;
    Handle handle = nullptr;
  };

  std::unexpected<Error> NoCubin() const {
    return Fail(ErrorKind::kSystem, version_ + " gives no cubin after linking one");
  }

  static std::string Text(Handle handle, int (*size_of)(Handle, std::size_t*),
                          int (*get)(Handle, char*)) {
    std::size_t size = 0;
    if (size_of(handle, &size) != kSuccess || size == 0) return "";
    std::string text(size, '\0');
    if (get(handle, text.data()) != kSuccess) return "";
    text.resize(text.find_last_not_of(std::string("\0 \n", 3)) + 1);
    return text;
  }

  const Functions nv_;
  const std::string version_;
};

Result<std::unique_ptr<PtxAssembler>> OpenAt(const std::string& place) {
  const auto library = SharedLibrary::Open({&place, 1});
  if (!library) {
    return Fail(
        ErrorKind::kNotFound,
        fmt::format("libnvJitLink cannot be opened ({}). It comes with the CUDA toolkit 12.4 "
                    "or newer, or: pip install --target /usr/local/lib/loopfleet/nvidia-nvjitlink "
                    "nvidia-nvjitlink; or set LOOPFLEET_NVJITLINK to its path",
                    library.error().message));
  }
  Functions nv;
  const bool complete = library->Find("nvJitLinkCreate", nv.create) &&
                        library->Find("nvJitLinkDestroy", nv.destroy) &&
                        library->Find("nvJitLinkAddData", nv.add_data) &&
                        library->Find("nvJitLinkComplete", nv.complete) &&
                        library->Find("nvJitLinkGetLinkedCubinSize", nv.cubin_size) &&
                        library->Find("nvJitLinkGetLinkedCubin", nv.cubin) &&
                        library->Find("nvJitLinkGetErrorLogSize", nv.error_size) &&
                        library->Find("nvJitLinkGetErrorLog", nv.error) &&
                        library->Find("nvJitLinkGetInfoLogSize", nv.info_size) &&
                        library->Find("nvJitLinkGetInfoLog", nv.info) &&
                        library->Find("nvJitLinkVersion", nv.version);
  unsigned major = 0;
  unsigned minor = 0;
  if (!complete || nv.version(&major, &minor) != kSuccess) {
    return Fail(ErrorKind::kSystem,
                place + " lacks a function that nvJitLink of CUDA 12.4 has: update it");
  }
  return std::make_unique<NvJitLink>(nv, fmt::format("nvJitLink {}.{}", major, minor));
}

}  // namespace

std::vector<std::string> NvJitLinkPlaces() {
  if (const char* named = std::getenv("LOOPFLEET_NVJITLINK"); named != nullptr && *named != '\0') {
    return {named};
  }
  return {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so",
          "/usr/local/cuda/lib64/libnvJitLink.so",
          "/usr/local/lib/loopfleet/nvidia-nvjitlink/nvidia/cu13/lib/libnvJitLink.so.13"};
}

Result<std::unique_ptr<PtxAssembler>> OpenNvJitLink(const std::string& place) {
  if (!place.empty()) return OpenAt(place);
  std::optional<Error> problem;  // of one that can be opened, else of the last
  for (const std::string& each : NvJitLinkPlaces()) {
    auto opened = OpenAt(each);
    if (opened) return opened;
    if (!problem || problem->kind == ErrorKind::kNotFound) problem = std::move(opened).error();
  }
  return std::unexpected(*std::move(problem));
}

}  // namespace loopfleet::worker
