// The real CudaDriver. Declares the driver's functions as cuda.h does. A versioned name (_v2) keeps
// its meaning in later drivers.

#include "worker/gpu/device/cuda_driver.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "worker/gpu/codegen/shared_library.h"

namespace loopfleet::worker {
namespace {

// Values of CUdevice_attribute.
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
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*copy_async)(CudaAddress, CudaAddress, std::size_t, void*) = nullptr;
  int (*fill_async)(CudaAddress, unsigned, std::size_t, void*) = nullptr;
  int (*event_create)(void**, unsigned) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_query)(void*) = nullptr;
  int (*event_elapsed)(float*, void*, void*) = nullptr;
  // Null if an older driver lacks them.
  int (*device_bus_id)(char*, int, int) = nullptr;
  int (*capture_begin)(void*, int) = nullptr;
  int (*capture_end)(void*, void**) = nullptr;
  int (*graph_instantiate)(void**, void*, unsigned long long) = nullptr;
  int (*graph_launch)(void*, void*) = nullptr;
  int (*graph_destroy)(void*) = nullptr;
  int (*graph_exec_destroy)(void*) = nullptr;
  bool is_fake = false;
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
    facts.is_fake = cu_.is_fake;
    std::array<char, 32> bus{};
    if (cu_.device_bus_id != nullptr && cu_.device_bus_id(bus.data(), bus.size(), device) == 0) {
      facts.bus_id = bus.data();
    }
    return CudaCode::kSuccess;
  }

  CudaCode EnterContext(int ordinal) override {
    int device = 0;
    if (const int result = cu_.device_get(&device, ordinal); result != 0) return Code(result);
    void* context = nullptr;
    if (const int result = cu_.context_retain(&context, device); result != 0) return Code(result);
    if (const int result = cu_.context_set(context); result != 0) return Code(result);
    // The default stream cannot be captured. This one still synchronises with it.
    return Code(cu_.stream_create(&stream_, 0));
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

  CudaCode StartFill(CudaAddress to, std::uint32_t word, std::uint64_t words) override {
    return Code(cu_.fill_async(to, word, words, stream_));
  }

  CudaCode StartCopy(CudaAddress to, CudaAddress from, std::uint64_t bytes) override {
    return Code(cu_.copy_async(to, from, bytes, stream_));
  }

  CudaCode MakeBatch(const std::vector<Launch>& launches, Batch& batch) override {
    if (cu_.capture_begin == nullptr || cu_.capture_end == nullptr ||
        cu_.graph_instantiate == nullptr || cu_.graph_launch == nullptr ||
        cu_.graph_destroy == nullptr || cu_.graph_exec_destroy == nullptr) {
      return CudaCode::kNotSupported;
    }
    constexpr int kRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
    if (const int result = cu_.capture_begin(stream_, kRelaxed); result != 0) return Code(result);
    CudaCode first = CudaCode::kSuccess;
    for (const Launch& launch : launches) {
      const CudaCode code = Start(launch);
      if (first == CudaCode::kSuccess) first = code;
    }
    void* graph = nullptr;
    const int ended = cu_.capture_end(stream_, &graph);
    if (first == CudaCode::kSuccess) first = Code(ended);
    if (first == CudaCode::kSuccess) {
      first = Code(cu_.graph_instantiate(&batch.handle, graph, 0));
    }
    if (graph != nullptr) cu_.graph_destroy(graph);
    return first;
  }
  CudaCode DestroyBatch(Batch batch) override { return Code(cu_.graph_exec_destroy(batch.handle)); }
  CudaCode StartBatch(Batch batch) override {
    return Code(cu_.graph_launch(batch.handle, stream_));
  }

  CudaCode Start(const Launch& launch) override {
    std::vector<CudaAddress> values = launch.arguments;
    std::vector<void*> arguments;
    for (CudaAddress& value : values) arguments.push_back(&value);
    return Code(cu_.launch(launch.function.handle, launch.blocks, 1, 1, launch.threads, 1, 1, 0,
                           stream_, arguments.data(), nullptr));
  }
  void* stream() const override { return stream_; }
  CudaCode CreateEvent(Event& event) override { return Code(cu_.event_create(&event.handle, 0)); }
  CudaCode DestroyEvent(Event event) override { return Code(cu_.event_destroy(event.handle)); }
  CudaCode Record(Event event) override { return Code(cu_.event_record(event.handle, stream_)); }
  CudaCode Query(Event event) override { return Code(cu_.event_query(event.handle)); }
  CudaCode ElapsedMilliseconds(Event from, Event to, float& milliseconds) override {
    return Code(cu_.event_elapsed(&milliseconds, from.handle, to.handle));
  }

 private:
  const Functions cu_;
  void* stream_ = nullptr;  // destroyed with the context
};

}  // namespace

bool IsSticky(CudaCode code) {
  switch (code) {
    case CudaCode::kSuccess:
    case CudaCode::kInvalidValue:
    case CudaCode::kOutOfMemory:
    case CudaCode::kInvalidDevice:
    case CudaCode::kInvalidImage:
    case CudaCode::kNoBinaryForGpu:
    case CudaCode::kInvalidPtx:
    case CudaCode::kUnsupportedPtxVersion:
    case CudaCode::kNoPtxCompiler:
    case CudaCode::kNotFound:
    case CudaCode::kNotReady:
    case CudaCode::kOutOfResources:
    case CudaCode::kNotSupported: return false;
    default: return true;
  }
}

std::string NameOf(CudaCode code) {
  const char* what = "see CUresult in cuda.h";
  switch (code) {
    case CudaCode::kSuccess: what = "success"; break;
    case CudaCode::kInvalidValue: what = "invalid value"; break;
    case CudaCode::kOutOfMemory: what = "out of memory"; break;
    case CudaCode::kNotInitialized: what = "driver not initialised"; break;
    case CudaCode::kDeinitialized: what = "driver shutting down"; break;
    case CudaCode::kStubLibrary: what = "a stub library instead of the driver"; break;
    case CudaCode::kDeviceUnavailable: what = "device not available"; break;
    case CudaCode::kContextIsDestroyed: what = "context destroyed"; break;
    case CudaCode::kNotSupported: what = "not supported"; break;
    case CudaCode::kDriverMismatch: what = "driver and its kernel module do not match"; break;
    case CudaCode::kNoDevice: what = "no device"; break;
    case CudaCode::kInvalidDevice: what = "no such device"; break;
    case CudaCode::kInvalidImage: what = "invalid image"; break;
    case CudaCode::kNoBinaryForGpu: what = "no code for this device"; break;
    case CudaCode::kEccUncorrectable: what = "uncorrectable memory error"; break;
    case CudaCode::kInvalidPtx: what = "invalid PTX"; break;
    case CudaCode::kUnsupportedPtxVersion: what = "PTX newer than the driver"; break;
    case CudaCode::kNoPtxCompiler: what = "the driver has no PTX compiler"; break;
    case CudaCode::kNotFound: what = "no such name"; break;
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

std::string VisibleDevices() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "" : fmt::format(" among those of CUDA_VISIBLE_DEVICES={}", visible);
}

Result<std::unique_ptr<CudaDriver>> OpenCudaDriver(const std::string& name) {
  const auto library = SharedLibrary::Open({&name, 1});
  if (!library) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("there is no CUDA driver ({}): install NVIDIA's driver, or run "
                            "this where there is a GPU",
                            library.error().message));
  }
  Functions cu;
  const char* missing = nullptr;
  const auto find_optional = [&](const char* symbol, auto& function) {
    library->Find(symbol, function);
  };
  const auto find = [&](const char* symbol, auto& function) {
    if (!library->Find(symbol, function)) missing = symbol;
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
  find("cuStreamCreate", cu.stream_create);
  find("cuMemcpyDtoDAsync_v2", cu.copy_async);
  find("cuMemsetD32Async", cu.fill_async);
  find_optional("cuDeviceGetPCIBusId", cu.device_bus_id);
  find_optional("cuStreamBeginCapture_v2", cu.capture_begin);
  find_optional("cuStreamEndCapture", cu.capture_end);
  find_optional("cuGraphInstantiateWithFlags", cu.graph_instantiate);
  find_optional("cuGraphLaunch", cu.graph_launch);
  find_optional("cuGraphDestroy", cu.graph_destroy);
  find_optional("cuGraphExecDestroy", cu.graph_exec_destroy);
  cu.is_fake = library->Symbol(kFakeDriverMark) != nullptr;
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
                fmt::format("the CUDA driver does not start: {}{}. If there is no /dev/nvidia-uvm: "
                            "name nvidia-uvm in /etc/modules-load.d, and run nvidia-modprobe -c 0 "
                            "-u before the worker (loopfleet-worker.service)",
                            NameOf(Code(result)), VisibleDevices()));
  }
  return std::make_unique<LibCuda>(cu);
}

}  // namespace loopfleet::worker
