// The real CudaDriver. The declarations stand here as cuda.h has them: the driver's functions keep
// their meaning under the names with _v2 and so on.

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <utility>

#include "worker/gpu/driver.h"

namespace loopfleet::worker {
namespace {

// Of CUdevice_attribute.
constexpr int kMultiprocessorCount = 16;
constexpr int kL2CacheSize = 38;
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;

struct Functions {
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_memory)(std::size_t*, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*context_retain)(void**, int) = nullptr;
  int (*context_release)(int) = nullptr;
  int (*context_set)(void*) = nullptr;
  int (*module_load)(void**, const void*) = nullptr;
  int (*module_unload)(void*) = nullptr;
  int (*module_function)(void**, void*, const char*) = nullptr;
  int (*allocate)(CudaAddress*, std::size_t) = nullptr;
  int (*free)(CudaAddress) = nullptr;
  int (*copy_in)(CudaAddress, const void*, std::size_t) = nullptr;
  int (*copy_out)(void*, CudaAddress, std::size_t) = nullptr;
  int (*fill)(CudaAddress, unsigned, std::size_t) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**) = nullptr;
  int (*event_create)(void**, unsigned) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_query)(void*) = nullptr;
  int (*event_elapsed)(float*, void*, void*) = nullptr;
};

CudaCode Code(int result) { return static_cast<CudaCode>(result); }

class LibCuda final : public CudaDriver {
 public:
  explicit LibCuda(const Functions& functions) : cu_(functions) {}

  CudaCode DeviceCount(int& count) override { return Code(cu_.device_count(&count)); }

  CudaCode DeviceFacts(int ordinal, Facts& facts) override {
    int device = 0;
    std::array<char, 256> name{};
    std::size_t memory = 0;
    int major = 0;
    int minor = 0;
    int l2 = 0;
    for (const int result :
         {cu_.device_get(&device, ordinal), cu_.device_name(name.data(), name.size(), device),
          cu_.device_memory(&memory, device), cu_.driver_version(&facts.driver_version),
          cu_.device_attribute(&major, kCapabilityMajor, device),
          cu_.device_attribute(&minor, kCapabilityMinor, device),
          cu_.device_attribute(&facts.multiprocessors, kMultiprocessorCount, device),
          cu_.device_attribute(&l2, kL2CacheSize, device)}) {
      if (result != 0) return Code(result);
    }
    facts.name = name.data();
    facts.compute_capability = 10 * major + minor;
    facts.memory_bytes = static_cast<std::int64_t>(memory);
    facts.l2_bytes = l2;
    return CudaCode::kSuccess;
  }

  CudaCode EnterContext(int ordinal) override {
    int device = 0;
    if (const int result = cu_.device_get(&device, ordinal); result != 0) return Code(result);
    void* context = nullptr;
    if (const int result = cu_.context_retain(&context, device); result != 0) return Code(result);
    return Code(cu_.context_set(context));
  }
  CudaCode LeaveContext(int ordinal) override {
    int device = 0;
    if (const int result = cu_.device_get(&device, ordinal); result != 0) return Code(result);
    return Code(cu_.context_release(device));
  }

  CudaCode LoadModule(const std::string& code, Module& module) override {
    return Code(cu_.module_load(&module.handle, code.c_str()));
  }
  CudaCode UnloadModule(Module module) override { return Code(cu_.module_unload(module.handle)); }
  CudaCode FindFunction(Module module, const std::string& symbol, Function& function) override {
    return Code(cu_.module_function(&function.handle, module.handle, symbol.c_str()));
  }

  CudaCode Allocate(std::uint64_t bytes, CudaAddress& address) override {
    return Code(cu_.allocate(&address, bytes));
  }
  CudaCode Free(CudaAddress address) override { return Code(cu_.free(address)); }
  CudaCode CopyIn(CudaAddress to, const void* from, std::uint64_t bytes) override {
    return Code(cu_.copy_in(to, from, bytes));
  }
  CudaCode CopyOut(void* to, CudaAddress from, std::uint64_t bytes) override {
    return Code(cu_.copy_out(to, from, bytes));
  }
  CudaCode Fill(CudaAddress to, std::uint32_t word, std::uint64_t words) override {
    return Code(cu_.fill(to, word, words));
  }

  CudaCode Start(const Launch& launch) override {
    std::vector<CudaAddress> values = launch.arguments;
    std::vector<void*> arguments;
    for (CudaAddress& value : values) arguments.push_back(&value);
    return Code(cu_.launch(launch.function.handle, launch.blocks, 1, 1, launch.threads, 1, 1, 0,
                           nullptr, arguments.data(), nullptr));
  }
  CudaCode CreateEvent(Event& event) override { return Code(cu_.event_create(&event.handle, 0)); }
  CudaCode DestroyEvent(Event event) override { return Code(cu_.event_destroy(event.handle)); }
  CudaCode Record(Event event) override { return Code(cu_.event_record(event.handle, nullptr)); }
  CudaCode Query(Event event) override { return Code(cu_.event_query(event.handle)); }
  CudaCode ElapsedMilliseconds(Event from, Event to, float& milliseconds) override {
    return Code(cu_.event_elapsed(&milliseconds, from.handle, to.handle));
  }

 private:
  const Functions cu_;
};

}  // namespace

bool IsSticky(CudaCode code) {
  switch (code) {
    case CudaCode::kEccUncorrectable:
    case CudaCode::kIllegalAddress:
    case CudaCode::kLaunchTimeout:
    case CudaCode::kHardwareStackError:
    case CudaCode::kIllegalInstruction:
    case CudaCode::kMisalignedAddress:
    case CudaCode::kInvalidAddressSpace:
    case CudaCode::kInvalidPc:
    case CudaCode::kLaunchFailed:
    case CudaCode::kUnknown: return true;
    default: return false;
  }
}

std::string NameOf(CudaCode code) {
  const char* what = "see CUresult in cuda.h";
  switch (code) {
    case CudaCode::kSuccess: what = "success"; break;
    case CudaCode::kInvalidValue: what = "invalid value"; break;
    case CudaCode::kOutOfMemory: what = "out of memory"; break;
    case CudaCode::kNoDevice: what = "no device"; break;
    case CudaCode::kInvalidDevice: what = "no such device"; break;
    case CudaCode::kInvalidImage: what = "invalid image"; break;
    case CudaCode::kNoBinaryForGpu: what = "no code for this device"; break;
    case CudaCode::kEccUncorrectable: what = "uncorrectable memory error"; break;
    case CudaCode::kInvalidPtx: what = "invalid PTX"; break;
    case CudaCode::kUnsupportedPtxVersion: what = "PTX newer than the driver"; break;
    case CudaCode::kNotReady: what = "not ready"; break;
    case CudaCode::kIllegalAddress: what = "illegal address"; break;
    case CudaCode::kOutOfResources: what = "launch out of resources"; break;
    case CudaCode::kLaunchTimeout: what = "launch timed out"; break;
    case CudaCode::kHardwareStackError: what = "hardware stack error"; break;
    case CudaCode::kIllegalInstruction: what = "illegal instruction"; break;
    case CudaCode::kMisalignedAddress: what = "misaligned address"; break;
    case CudaCode::kInvalidAddressSpace: what = "invalid address space"; break;
    case CudaCode::kInvalidPc: what = "invalid program counter"; break;
    case CudaCode::kLaunchFailed: what = "launch failed"; break;
    case CudaCode::kUnknown: what = "unknown"; break;
  }
  return fmt::format("CUDA error {} ({})", static_cast<int>(code), what);
}

Result<std::unique_ptr<CudaDriver>> OpenCudaDriver(const std::string& name) {
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("there is no CUDA driver ({}): install NVIDIA's driver, or run "
                            "this where there is a GPU",
                            ::dlerror()));
  }
  Functions cu;
  const char* missing = nullptr;
  const auto find = [&](const char* symbol, auto& function) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
    if (function == nullptr) missing = symbol;
  };
  find("cuInit", cu.init);
  find("cuDriverGetVersion", cu.driver_version);
  find("cuDeviceGetCount", cu.device_count);
  find("cuDeviceGet", cu.device_get);
  find("cuDeviceGetName", cu.device_name);
  find("cuDeviceTotalMem_v2", cu.device_memory);
  find("cuDeviceGetAttribute", cu.device_attribute);
  find("cuDevicePrimaryCtxRetain", cu.context_retain);
  find("cuDevicePrimaryCtxRelease_v2", cu.context_release);
  find("cuCtxSetCurrent", cu.context_set);
  find("cuModuleLoadData", cu.module_load);
  find("cuModuleUnload", cu.module_unload);
  find("cuModuleGetFunction", cu.module_function);
  find("cuMemAlloc_v2", cu.allocate);
  find("cuMemFree_v2", cu.free);
  find("cuMemcpyHtoD_v2", cu.copy_in);
  find("cuMemcpyDtoH_v2", cu.copy_out);
  find("cuMemsetD32_v2", cu.fill);
  find("cuLaunchKernel", cu.launch);
  find("cuEventCreate", cu.event_create);
  find("cuEventDestroy_v2", cu.event_destroy);
  find("cuEventRecord", cu.event_record);
  find("cuEventQuery", cu.event_query);
  find("cuEventElapsedTime", cu.event_elapsed);
  if (missing != nullptr) {
    return Fail(ErrorKind::kSystem,
                fmt::format("{} has no {}: the driver is too old", name, missing));
  }
  if (const int result = cu.init(0); result != 0) {
    return Fail(ErrorKind::kUnavailable,
                fmt::format("the CUDA driver does not start: {}", NameOf(Code(result))));
  }
  return std::make_unique<LibCuda>(cu);
}

}  // namespace loopfleet::worker
