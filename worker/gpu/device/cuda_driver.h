#pragma once
// CudaDriver: the functions of NVIDIA's driver that we use, as an interface. The real one is
// libcuda.so.1, opened at run time and never linked, so that one program runs on hosts with and
// without a GPU. Tests implement their own. No CUDA header is needed.
//
// Used by one thread. A code other than kSuccess may come from an earlier launch, because launches
// are asynchronous.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace loopfleet::worker {

// The CUresult codes that we distinguish. A call may return any other number.
enum class CudaCode : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kNoPtxCompiler = 221,
  kUnsupportedPtxVersion = 222,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kDriverMismatch = 803,
  kUnknown = 999,
};

// True if no further call of this process can succeed on the device. Most codes are sticky, and a
// new process costs only a second, so every code that is not known to be harmless counts as sticky.
bool IsSticky(CudaCode code);
std::string NameOf(CudaCode code);  // "CUDA error 700 (illegal address)"
// For a message: the environment variable that selects and numbers the devices; empty: it is not
// set.
std::string VisibleDevices();

using CudaAddress = std::uint64_t;

class CudaDriver {
 public:
  struct Module {
    void* handle = nullptr;
  };
  struct Function {
    void* handle = nullptr;
  };
  struct Event {
    void* handle = nullptr;
  };
  // Launches submitted to the device together (a CUDA graph), for kernels that take less time than
  // their launch.
  struct Batch {
    void* handle = nullptr;
  };
  struct Facts {
    std::string name;
    std::string bus_id;          // "00000000:3B:00.0"; empty: the driver does not tell
    int compute_capability = 0;  // 10 * major + minor
    int driver_version = 0;      // CUDA version; 13000 is 13.0
    int multiprocessors = 0;
    std::int64_t memory_bytes = 0;
    std::int64_t l2_bytes = 0;
    // True if the driver is a fake that tests install, recognised by kFakeDriverMark. None of its
    // figures is a measurement.
    bool is_fake = false;
  };
  struct Launch {
    Function function;
    std::uint32_t blocks = 1;
    std::uint32_t threads = 1;
    std::vector<CudaAddress> arguments;
  };

  virtual ~CudaDriver() = default;
  virtual CudaCode DeviceCount(int& count) = 0;
  virtual CudaCode DeviceFacts(int device, Facts& facts) = 0;
  // Makes the device's primary context current for the calling thread. All calls below need it.
  virtual CudaCode EnterContext(int device) = 0;
  virtual CudaCode LeaveContext(int device) = 0;

  virtual CudaCode LoadModule(const std::string& code, Module& module) = 0;  // a cubin or PTX
  virtual CudaCode UnloadModule(Module module) = 0;
  virtual CudaCode FindFunction(Module module, const std::string& symbol, Function& function) = 0;

  virtual CudaCode Allocate(std::uint64_t bytes, CudaAddress& address) = 0;
  virtual CudaCode Free(CudaAddress address) = 0;
  virtual CudaCode CopyIn(CudaAddress to, const void* from, std::uint64_t bytes) = 0;
  virtual CudaCode CopyOut(void* to, CudaAddress from, std::uint64_t bytes) = 0;
  virtual CudaCode Fill(CudaAddress to, std::uint32_t word, std::uint64_t words) = 0;

  // These are queued and run in order. The calls do not wait.
  virtual CudaCode Start(const Launch& launch) = 0;
  virtual CudaCode StartFill(CudaAddress to, std::uint32_t word, std::uint64_t words) = 0;
  virtual CudaCode StartCopy(CudaAddress to, CudaAddress from, std::uint64_t bytes) = 0;
  // kNotSupported: this driver has no graphs.
  virtual CudaCode MakeBatch(const std::vector<Launch>& launches, Batch& batch) = 0;
  virtual CudaCode DestroyBatch(Batch batch) = 0;
  virtual CudaCode StartBatch(Batch batch) = 0;
  // The stream of all queued work, for libraries that queue work themselves. Null: none.
  virtual void* stream() const { return nullptr; }
  virtual CudaCode CreateEvent(Event& event) = 0;
  virtual CudaCode DestroyEvent(Event event) = 0;
  virtual CudaCode Record(Event event) = 0;
  virtual CudaCode Query(Event event) = 0;  // kNotReady: not reached yet
  virtual CudaCode ElapsedMilliseconds(Event from, Event to, float& milliseconds) = 0;
};

// The symbol that identifies a fake driver installed by tests.
inline constexpr const char* kFakeDriverMark = "loopfleet_fake_cuda_driver";

// Opens the driver. kNotFound, with what to do: no driver. kSystem: the driver is too old and lacks
// a needed function. kUnavailable: the driver does not start.
Result<std::unique_ptr<CudaDriver>> OpenCudaDriver(const std::string& library = "libcuda.so.1");

}  // namespace loopfleet::worker
