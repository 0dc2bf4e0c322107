// A fake libcuda.so.1 for tests without a GPU: the part of the CUDA driver that loopfleet uses.
// Runs kernels from their PTX (ptx_machine.h); a cubin is the fake nvJitLink's and contains the
// PTX. Time is simulated from the number of instructions, so it is always the same. Its symbol
// loopfleet_fake_cuda_driver and its device name identify it as a fake.
//
// The file named by LOOPFLEET_FAKE_CUDA (control.h) sets the device and its faults. BYTES selects
// launches by the size of their first buffer (0: all):
//   devices N, capability N, driver N, memory BYTES, l2 BYTES
//                       the properties of the device
//   init CODE, context CODE, cubin CODE, ptx CODE
//                       the results of these calls
//   ends BYTES CODE     the launch ends with this sticky error
//   hangs BYTES         the launch never ends
//   idle BYTES          the launch does nothing
//   kills BYTES         the launch kills the process
//   forgets 1           memory does not keep what is written
//   no_graphs 1         CUDA graphs are not supported

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/fake_cuda/control.h"
#include "tests/support/fake_cuda/ptx_machine.h"

namespace loopfleet::fake_cuda {
namespace {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidImage = 200;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;
constexpr int kNotSupported = 801;
constexpr const char* kCubinMark = "\177ELF loopfleet fake cubin\n";

constexpr double kLaunchNs = 10'000;
constexpr double kLaunchInGraphNs = 2'000;
constexpr double kInstructionNs = 0.05;
constexpr double kBytesPerNs = 100;

struct Module {
  std::map<std::string, Function> functions;
};
struct Started {
  const Function* function = nullptr;
  Launch launch;
};
struct Event {
  double at_ns = 0;
};

struct Device {
  std::map<std::uint64_t, std::vector<char>> memory;
  std::uint64_t used = 0;
  std::set<std::unique_ptr<Module>> modules;
  // Kernels are deterministic, so a launch whose buffers were not written since it last ran is not
  // run again. The value is its instruction count.
  std::map<std::pair<const Function*, std::vector<std::uint64_t>>, std::uint64_t> ran;
  double now_ns = 0;
  int broken = kSuccess;  // sticky
  bool hangs = false;
  bool captures = false;
  std::vector<Started> captured;
};

Device& It() {
  static auto* device = new Device();
  return *device;
}

char* Where(std::uint64_t address, std::size_t bytes) {
  auto at = It().memory.upper_bound(address);
  if (at == It().memory.begin()) return nullptr;
  --at;
  const std::uint64_t inside = address - at->first;
  if (inside > at->second.size() || at->second.size() - inside < bytes) return nullptr;
  return at->second.data() + inside;
}

std::uint64_t SizeAt(std::uint64_t address) {
  const auto at = It().memory.find(address);
  return at == It().memory.end() ? 0 : at->second.size();
}

// Called when the memory at `address` is written or freed.
void Forget(std::uint64_t address) {
  std::erase_if(It().ran, [&](const auto& entry) {
    for (const std::uint64_t argument : entry.first.second) {
      if (argument == address) return true;
    }
    return false;
  });
}

int Execute(const Started& started, double launch_ns) {
  Device& device = It();
  const std::vector<std::uint64_t>& arguments = started.launch.arguments;
  const std::uint64_t bytes = arguments.empty() ? 0 : SizeAt(arguments.front());
  const Control control = Control::Read();
  device.now_ns += launch_ns;
  if (control.ForBytes("hangs", bytes, 0) != 0) {
    device.hangs = true;
    return kSuccess;
  }
  if (control.ForBytes("kills", bytes, 0) != 0) __builtin_trap();
  if (control.ForBytes("idle", bytes, 0) != 0) return kSuccess;
  if (const auto code = control.ForBytes("ends", bytes, kSuccess); code != kSuccess) {
    device.broken = static_cast<int>(code);  // reported by later calls
    return kSuccess;
  }
  auto [at, is_new] = device.ran.try_emplace({started.function, arguments}, 0);
  if (is_new) {
    const int code = RunFunction(*started.function, started.launch, Where, at->second);
    if (code != kSuccess) device.broken = code;
  }
  device.now_ns += static_cast<double>(at->second) * kInstructionNs;
  return kSuccess;
}

int Now() { return It().broken; }

}  // namespace
}  // namespace loopfleet::fake_cuda

// NOLINTBEGIN: the names are NVIDIA's
using namespace loopfleet::fake_cuda;

extern "C" {

int loopfleet_fake_cuda_driver = 1;

// Opens a device each time, like the real driver, so confined processes must not call it.
int cuInit(unsigned) {
  if (const int device = ::open("/dev/nvidiactl", O_RDWR | O_CLOEXEC); device >= 0) ::close(device);
  return static_cast<int>(Control::Read().Get("init", kSuccess));
}
int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(Control::Read().Get("driver", 13000));
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(Control::Read().Get("devices", 1));
  return kSuccess;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < Control::Read().Get("devices", 1) ? kSuccess : kInvalidDevice;
}
int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "fake", static_cast<std::size_t>(size));
  return kSuccess;
}
int cuDeviceGetPCIBusId(char* id, int size, int) {
  std::strncpy(id, "00000000:FA:CE.0", static_cast<std::size_t>(size));
  return kSuccess;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = static_cast<std::size_t>(Control::Read().Get("memory", 64 << 20));
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const Control control = Control::Read();
  const auto capability = static_cast<int>(control.Get("capability", 90));
  switch (attribute) {
    case 16: *value = 1; return kSuccess;  // multiprocessors
    case 38: *value = static_cast<int>(control.Get("l2", 1 << 16)); return kSuccess;
    case 75: *value = capability / 10; return kSuccess;
    case 76: *value = capability % 10; return kSuccess;
    default: *value = 0; return kInvalidValue;
  }
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &It();
  return static_cast<int>(Control::Read().Get("context", kSuccess));
}
int cuDevicePrimaryCtxRelease_v2(int) { return Now(); }
int cuCtxSetCurrent(void*) { return Now(); }
int cuStreamCreate(void** stream, unsigned) {
  *stream = &It();
  return Now();
}

int cuModuleLoadData(void** module, const void* data) {
  if (Now() != kSuccess) return Now();
  const Control control = Control::Read();
  std::string text = static_cast<const char*>(data);
  const bool is_cubin = text.starts_with("\177ELF");
  const int refusal = static_cast<int>(control.Get(is_cubin ? "cubin" : "ptx", kSuccess));
  if (refusal != kSuccess) return refusal;
  if (is_cubin) {
    if (!text.starts_with(kCubinMark)) return kInvalidImage;  // a real cubin
    text = text.substr(std::strlen(kCubinMark));
  }
  std::string problem;
  auto made = std::make_unique<Module>();
  made->functions = ParsePtx(text, problem);
  if (!problem.empty()) return kInvalidPtx;
  *module = made.get();
  It().modules.insert(std::move(made));
  return kSuccess;
}
int cuModuleUnload(void* module) {
  if (Now() != kSuccess) return Now();
  It().ran.clear();
  std::erase_if(It().modules, [&](const auto& known) { return known.get() == module; });
  return kSuccess;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (Now() != kSuccess) return Now();
  auto& functions = static_cast<Module*>(module)->functions;
  const auto at = functions.find(name);
  if (at == functions.end()) return kNotFound;
  *function = &at->second;
  return kSuccess;
}

int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  if (Now() != kSuccess) return Now();
  Device& device = It();
  const auto limit = static_cast<std::uint64_t>(Control::Read().Get("memory", 64 << 20));
  if (bytes > limit || device.used + bytes > limit) return kOutOfMemory;
  // Aligned as CUDA aligns, with unmapped addresses between blocks to detect overruns.
  std::vector<char> block(bytes);
  std::uint64_t next = 0x7f0000000000;
  if (!device.memory.empty()) {
    next = device.memory.rbegin()->first + device.memory.rbegin()->second.size();
  }
  *address = (next + 0x10000) / 0x1000 * 0x1000;
  device.memory[*address] = std::move(block);
  device.used += bytes;
  return kSuccess;
}
int cuMemFree_v2(std::uint64_t address) {
  if (Now() != kSuccess) return Now();
  Forget(address);
  It().used -= SizeAt(address);
  return It().memory.erase(address) == 1 ? kSuccess : kInvalidValue;
}
int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
  if (Now() != kSuccess) return Now();
  char* const at = Where(to, bytes);
  if (at == nullptr) return kInvalidValue;
  Forget(to);
  std::memcpy(at, from, bytes);
  return kSuccess;
}
int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  if (Now() != kSuccess) return Now();
  const char* const at = Where(from, bytes);
  if (at == nullptr) return kInvalidValue;
  std::memcpy(to, at, bytes);
  return kSuccess;
}
int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void*) {
  if (Now() != kSuccess) return Now();
  char* const target = Where(to, bytes);
  const char* const source = Where(from, bytes);
  if (target == nullptr || source == nullptr) return kInvalidValue;
  Forget(to);
  std::memcpy(target, source, bytes);
  It().now_ns += kLaunchInGraphNs + static_cast<double>(bytes) / kBytesPerNs;
  return kSuccess;
}
int cuMemsetD32_v2(std::uint64_t to, unsigned word, std::size_t words) {
  if (Now() != kSuccess) return Now();
  char* const at = Where(to, 4 * words);
  if (at == nullptr) return kInvalidValue;
  Forget(to);
  for (std::size_t i = 0; i < words; ++i) std::memcpy(at + 4 * i, &word, 4);
  if (words > 0 && Control::Read().Get("forgets", 0) != 0) at[2 * words] ^= 1;
  return kSuccess;
}
int cuMemsetD32Async(std::uint64_t to, unsigned word, std::size_t words, void*) {
  It().now_ns += 4 * static_cast<double>(words) / kBytesPerNs;
  return cuMemsetD32_v2(to, word, words);
}

int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                   unsigned, unsigned, void*, void** arguments, void**) {
  if (Now() != kSuccess) return Now();
  Started started{.function = static_cast<const Function*>(function),
                  .launch = {.blocks = blocks, .threads = threads, .arguments = {}}};
  for (std::size_t i = 0; i < started.function->parameters; ++i) {
    started.launch.arguments.push_back(*static_cast<std::uint64_t*>(arguments[i]));
  }
  if (It().captures) {
    It().captured.push_back(std::move(started));
    return kSuccess;
  }
  return Execute(started, kLaunchNs);
}
int cuStreamBeginCapture_v2(void*, int) {
  if (Control::Read().Get("no_graphs", 0) != 0) return kNotSupported;
  It().captures = true;
  return Now();
}
int cuStreamEndCapture(void*, void** graph) {
  It().captures = false;
  *graph = new std::vector<Started>(std::move(It().captured));
  It().captured.clear();
  return Now();
}
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  *exec = new std::vector<Started>(*static_cast<std::vector<Started>*>(graph));
  return Now();
}
int cuGraphLaunch(void* exec, void*) {
  for (const Started& started : *static_cast<std::vector<Started>*>(exec)) {
    if (Now() != kSuccess) return Now();
    if (const int code = Execute(started, kLaunchInGraphNs); code != kSuccess) return code;
  }
  return kSuccess;
}
int cuGraphDestroy(void* graph) {
  delete static_cast<std::vector<Started>*>(graph);
  return Now();
}
int cuGraphExecDestroy(void* exec) {
  delete static_cast<std::vector<Started>*>(exec);
  return Now();
}

int cuEventCreate(void** event, unsigned) {
  *event = new Event();
  return Now();
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return Now();
}
int cuEventRecord(void* event, void*) {
  static_cast<Event*>(event)->at_ns = It().now_ns;
  return kSuccess;
}
int cuEventQuery(void*) { return It().hangs ? kNotReady : Now(); }
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  *milliseconds = static_cast<float>(
      (static_cast<Event*>(to)->at_ns - static_cast<Event*>(from)->at_ns) * 1e-6);
  return Now();
}

}  // extern "C"
// NOLINTEND
