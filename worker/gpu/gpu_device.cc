#include "worker/gpu/gpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <thread>
#include <utility>

namespace loopfleet::worker {
namespace {

constexpr std::uint64_t kCheckedWords = std::uint64_t{1} << 20;

std::chrono::nanoseconds SteadyNow() { return std::chrono::steady_clock::now().time_since_epoch(); }

FailureCode CodeOf(CudaCode code) {
  switch (code) {
    case CudaCode::kOutOfMemory: return FailureCode::kRunOom;
    case CudaCode::kInvalidImage:
    case CudaCode::kNoBinaryForGpu:
    case CudaCode::kInvalidPtx:
    case CudaCode::kUnsupportedPtxVersion:
    case CudaCode::kOutOfResources: return FailureCode::kCompileError;
    case CudaCode::kLaunchTimeout: return FailureCode::kRunTimeout;
    case CudaCode::kIllegalAddress:
    case CudaCode::kHardwareStackError:
    case CudaCode::kIllegalInstruction:
    case CudaCode::kMisalignedAddress:
    case CudaCode::kInvalidAddressSpace:
    case CudaCode::kInvalidPc:
    case CudaCode::kLaunchFailed: return FailureCode::kRunCrash;
    default: return FailureCode::kDeviceFault;
  }
}

}  // namespace

Failure GpuDevice::FailureOf(CudaCode code, std::string_view doing) {
  if (IsSticky(code)) lost_ = true;
  return {.code = CodeOf(code),
          .message = fmt::format("{} on {}: {}", doing, facts_.name, NameOf(code))};
}

std::expected<void, Failure> GpuDevice::Succeeds(CudaCode code, std::string_view doing) {
  if (lost_) {
    return std::unexpected(Failure{
        .code = FailureCode::kDeviceFault,
        .message = fmt::format("{} was lost to an earlier error of this process", facts_.name)});
  }
  if (code == CudaCode::kSuccess) return {};
  return std::unexpected(FailureOf(code, doing));
}

Result<std::unique_ptr<GpuDevice>> GpuDevice::Open(CudaDriver& driver, const Options& options) {
  int count = 0;
  if (const CudaCode code = driver.DeviceCount(count); code != CudaCode::kSuccess) {
    return Fail(ErrorKind::kUnavailable, "counting CUDA devices: " + NameOf(code));
  }
  if (options.ordinal < 0 || options.ordinal >= count) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("cuda:{}: there {} {} CUDA device{}", options.ordinal,
                            count == 1 ? "is" : "are", count, count == 1 ? ", cuda:0" : "s"));
  }
  std::unique_ptr<GpuDevice> device(new GpuDevice(driver, options));
  if (!device->options_.clock) device->options_.clock = SteadyNow;
  for (const auto& step : std::vector<std::function<CudaCode()>>{
           [&] { return driver.DeviceFacts(options.ordinal, device->facts_); },
           [&] {
             const CudaCode code = driver.EnterContext(options.ordinal);
             device->entered_ = code == CudaCode::kSuccess;
             return code;
           },
           [&] { return driver.CreateEvent(device->begin_); },
           [&] { return driver.CreateEvent(device->end_); }}) {
    if (const CudaCode code = step(); code != CudaCode::kSuccess) {
      return Fail(ErrorKind::kUnavailable,
                  fmt::format("cuda:{} cannot be used: {}", options.ordinal, NameOf(code)));
    }
  }
  return device;
}

GpuDevice::~GpuDevice() {
  // A lost device answers nothing but errors: the process ends, and the driver tidies up.
  if (lost_) return;
  if (begin_.handle != nullptr) (void)driver_.DestroyEvent(begin_);
  if (end_.handle != nullptr) (void)driver_.DestroyEvent(end_);
  if (entered_) (void)driver_.LeaveContext(options_.ordinal);
}

GpuDevice::Loaded::~Loaded() {
  if (device_.lost_) return;
  for (CudaAddress buffer : buffers_) (void)device_.driver_.Free(buffer);
  if (module_.handle != nullptr) (void)device_.driver_.UnloadModule(module_);
}

std::expected<std::unique_ptr<GpuDevice::Loaded>, Failure> GpuDevice::Load(
    const GpuKernel& kernel, const std::string& code) {
  LF_TRY_VOID(Succeeds(CudaCode::kSuccess, "loading"));
  std::unique_ptr<Loaded> loaded(new Loaded(*this));
  LF_TRY_VOID(Succeeds(driver_.LoadModule(code, loaded->module_), "loading the kernel"));
  loaded->specs_ = kernel.buffers;
  for (const BufferSpec& spec : kernel.buffers) {
    CudaAddress address = 0;
    const std::uint64_t bytes = std::max<std::uint64_t>(spec.element_count, 1) * sizeof(float);
    LF_TRY_VOID(Succeeds(driver_.Allocate(bytes, address), "allocating its buffers"));
    loaded->buffers_.push_back(address);
  }
  for (const GpuLaunch& launch : kernel.launches) {
    CudaDriver::Launch start{.function = {},
                             .blocks = launch.blocks,
                             .threads = launch.threads,
                             .arguments = loaded->buffers_};
    LF_TRY_VOID(Succeeds(driver_.FindFunction(loaded->module_, launch.symbol, start.function),
                         "looking for " + launch.symbol));
    loaded->launches_.push_back(std::move(start));
  }
  return loaded;
}

std::expected<void, Failure> GpuDevice::StartAll(const Loaded& kernel) {
  for (const CudaDriver::Launch& launch : kernel.launches_) {
    LF_TRY_VOID(Succeeds(driver_.Start(launch), "launching the kernel"));
  }
  return {};
}

std::expected<void, Failure> GpuDevice::WaitFor(CudaDriver::Event event,
                                                std::chrono::nanoseconds limit) {
  const std::chrono::nanoseconds deadline = options_.clock() + limit;
  for (;;) {
    const CudaCode code = driver_.Query(event);
    if (code != CudaCode::kNotReady) return Succeeds(code, "running the kernel");
    if (options_.clock() >= deadline) {
      lost_ = true;
      return std::unexpected(Failure{
          .code = FailureCode::kRunTimeout,
          .message = fmt::format(
              "the kernel had not ended after {} ms on {}",
              std::chrono::duration_cast<std::chrono::milliseconds>(limit).count(), facts_.name)});
    }
    std::this_thread::yield();
  }
}

std::expected<std::vector<looptree::Tensor>, Failure> GpuDevice::Run(
    Loaded& kernel, const std::vector<looptree::Tensor>& inputs) {
  const std::uint32_t poison =
      std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < kernel.specs_.size(); ++i) {
    const BufferSpec& spec = kernel.specs_[i];
    const bool input = spec.role == BufferSpec::Role::kInput;
    if (input && (i >= inputs.size() || inputs[i].size() != spec.element_count)) {
      return std::unexpected(Failure{.code = FailureCode::kDeviceFault,
                                     .message = fmt::format("input {} has the wrong size", i)});
    }
    LF_TRY_VOID(
        Succeeds(input ? driver_.CopyIn(kernel.buffers_[i], inputs[i].data(), inputs[i].size() * 4)
                       : driver_.Fill(kernel.buffers_[i], poison, spec.element_count),
                 "filling its buffers"));
  }
  LF_TRY_VOID(StartAll(kernel));
  LF_TRY_VOID(Succeeds(driver_.Record(end_), "recording its end"));
  LF_TRY_VOID(WaitFor(end_, options_.run_limit));
  std::vector<looptree::Tensor> outputs;
  for (std::size_t i = 0; i < kernel.specs_.size(); ++i) {
    if (kernel.specs_[i].role != BufferSpec::Role::kOutput) continue;
    looptree::Tensor output(kernel.specs_[i].element_count);
    LF_TRY_VOID(Succeeds(driver_.CopyOut(output.data(), kernel.buffers_[i], output.size() * 4),
                         "reading its outputs"));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

std::expected<double, Failure> GpuDevice::Time(Loaded& kernel, int runs) {
  LF_TRY_VOID(Succeeds(driver_.Record(begin_), "recording its begin"));
  for (int i = 0; i < runs; ++i) LF_TRY_VOID(StartAll(kernel));
  LF_TRY_VOID(Succeeds(driver_.Record(end_), "recording its end"));
  LF_TRY_VOID(WaitFor(end_, options_.run_limit * runs));
  float milliseconds = 0;
  LF_TRY_VOID(
      Succeeds(driver_.ElapsedMilliseconds(begin_, end_, milliseconds), "reading its time"));
  return double{milliseconds} * 1e6;
}

std::expected<void, Failure> GpuDevice::CheckMemory() {
  CudaAddress memory = 0;
  LF_TRY_VOID(Succeeds(driver_.Allocate(kCheckedWords * 4, memory), "allocating memory to check"));
  std::vector<std::uint32_t> words(kCheckedWords);
  std::expected<void, Failure> result;
  for (const std::uint32_t pattern : {0x55555555U, 0xaaaaaaaaU}) {
    result = Succeeds(driver_.Fill(memory, pattern, kCheckedWords), "writing memory to check");
    if (result) {
      result = Succeeds(driver_.CopyOut(words.data(), memory, kCheckedWords * 4),
                        "reading memory to check");
    }
    if (!result) break;
    if (std::ranges::any_of(words, [&](std::uint32_t word) { return word != pattern; })) {
      result = std::unexpected(Failure{
          .code = FailureCode::kDeviceFault,
          .message = fmt::format("memory of {} does not keep what is written", facts_.name)});
      break;
    }
  }
  if (!lost_) (void)driver_.Free(memory);
  return result;
}

std::expected<void, Failure> GpuDevice::Check(const GpuKernel& canary, const std::string& code,
                                              const std::vector<looptree::Tensor>& inputs,
                                              const std::vector<looptree::Tensor>& outputs) {
  LF_TRY_VOID(CheckMemory());
  LF_TRY(const auto loaded, Load(canary, code));
  LF_TRY(const auto got, Run(*loaded, inputs));
  if (got == outputs) return {};
  return std::unexpected(
      Failure{.code = FailureCode::kDeviceFault,
              .message = fmt::format("{} computes the canary wrongly", facts_.name)});
}

}  // namespace loopfleet::worker
