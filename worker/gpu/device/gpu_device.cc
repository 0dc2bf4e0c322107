#include "worker/gpu/device/gpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "worker/verification/verification.h"

namespace loopfleet::worker {
namespace {

constexpr std::uint64_t kCheckedWords = std::uint64_t{1} << 20;

std::chrono::nanoseconds SteadyNow() { return std::chrono::steady_clock::now().time_since_epoch(); }

std::vector<float> RandomFloats(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (float& value : values) {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    constexpr float kUnit = 1.0F / (1U << 24U);
    value = 0.5F + static_cast<float>(state >> 40U) * kUnit;
  }
  return values;
}

FailureCode CodeOf(CudaCode code) {
  switch (code) {
    case CudaCode::kOutOfMemory: return FailureCode::kRunOom;
    case CudaCode::kInvalidImage:
    case CudaCode::kNoBinaryForGpu:
    case CudaCode::kInvalidPtx:
    case CudaCode::kUnsupportedPtxVersion:
    case CudaCode::kNoPtxCompiler:
    case CudaCode::kNotFound:
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
    return Fail(ErrorKind::kNotFound, fmt::format("cuda:{}: there {} {} CUDA device{}{}",
                                                  options.ordinal, count == 1 ? "is" : "are", count,
                                                  count == 1 ? ", cuda:0" : "s", VisibleDevices()));
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
  // A lost device only returns errors. The driver cleans up when the process ends.
  if (lost_) return;
  if (evictor_ != 0) (void)driver_.Free(evictor_);
  if (begin_.handle != nullptr) (void)driver_.DestroyEvent(begin_);
  if (end_.handle != nullptr) (void)driver_.DestroyEvent(end_);
  for (const CudaDriver::Event mark : marks_) (void)driver_.DestroyEvent(mark);
  if (entered_) (void)driver_.LeaveContext(options_.ordinal);
}

GpuDevice::Loaded::~Loaded() {
  if (device_.lost_) return;
  if (batch_.handle != nullptr) (void)device_.driver_.DestroyBatch(batch_);
  for (const auto& buffers : copies_) {
    for (CudaAddress buffer : buffers) (void)device_.driver_.Free(buffer);
  }
  if (module_.handle != nullptr) (void)device_.driver_.UnloadModule(module_);
}

std::uint64_t GpuDevice::Loaded::bytes() const {
  std::uint64_t elements = 0;
  for (const BufferSpec& spec : specs_) elements += spec.element_count;
  return elements * sizeof(float);
}

std::expected<std::unique_ptr<GpuDevice::Loaded>, Failure> GpuDevice::Load(
    const GpuKernel& kernel, const std::string& code) {
  LF_TRY_VOID(Succeeds(CudaCode::kSuccess, "loading"));
  std::unique_ptr<Loaded> loaded(new Loaded(*this));
  LF_TRY_VOID(Succeeds(driver_.LoadModule(code, loaded->module_), "loading the kernel"));
  loaded->specs_ = kernel.buffers;
  LF_TRY(auto buffers, AllocateBuffers(*loaded));
  loaded->copies_.push_back(std::move(buffers));
  for (const GpuLaunch& launch : kernel.launches) {
    CudaDriver::Launch start{
        .function = {}, .blocks = launch.blocks, .threads = launch.threads, .arguments = {}};
    LF_TRY_VOID(Succeeds(driver_.FindFunction(loaded->module_, launch.symbol, start.function),
                         "looking for " + launch.symbol));
    loaded->launches_.push_back(std::move(start));
  }
  return loaded;
}

// Allocates all buffers, or none.
std::expected<std::vector<CudaAddress>, Failure> GpuDevice::AllocateBuffers(const Loaded& kernel) {
  std::vector<CudaAddress> buffers;
  for (const BufferSpec& spec : kernel.specs_) {
    CudaAddress address = 0;
    const std::uint64_t bytes = std::max<std::uint64_t>(spec.element_count, 1) * sizeof(float);
    auto allocated = Succeeds(driver_.Allocate(bytes, address), "allocating its buffers");
    if (!allocated) {
      if (!lost_) {
        for (const CudaAddress buffer : buffers) (void)driver_.Free(buffer);
      }
      return std::unexpected(std::move(allocated).error());
    }
    buffers.push_back(address);
  }
  return buffers;
}

std::vector<CudaDriver::Launch> GpuDevice::LaunchesOf(const Loaded& kernel,
                                                      std::size_t copy) const {
  std::vector<CudaDriver::Launch> launches = kernel.launches_;
  for (CudaDriver::Launch& launch : launches) launch.arguments = kernel.copies_[copy];
  return launches;
}

std::expected<void, Failure> GpuDevice::StartAll(const Loaded& kernel, std::size_t copy) {
  for (const CudaDriver::Launch& launch : LaunchesOf(kernel, copy)) {
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

std::expected<void, Failure> GpuDevice::SetInput(Loaded& kernel, std::size_t input,
                                                 std::span<const float> values) {
  if (values.size() != kernel.specs_[input].element_count) {
    return std::unexpected(Failure{.code = FailureCode::kDeviceFault,
                                   .message = fmt::format("input {} has the wrong size", input)});
  }
  for (const auto& buffers : kernel.copies_) {
    LF_TRY_VOID(Succeeds(driver_.CopyIn(buffers[input], values.data(), values.size_bytes()),
                         "filling its buffers"));
  }
  return {};
}

std::expected<void, Failure> GpuDevice::SetInputs(Loaded& kernel, Inputs inputs) {
  for (std::size_t i = 0; i < kernel.specs_.size(); ++i) {
    if (kernel.specs_[i].role != BufferSpec::Role::kInput) continue;
    LF_TRY_VOID(SetInput(kernel, i, i < inputs.size() ? inputs[i] : std::span<const float>()));
  }
  return {};
}

std::expected<void, Failure> GpuDevice::SetRandomInputs(Loaded& kernel) {
  for (std::size_t i = 0; i < kernel.specs_.size(); ++i) {
    if (kernel.specs_[i].role != BufferSpec::Role::kInput) continue;
    LF_TRY_VOID(SetInput(kernel, i, RandomFloats(kernel.specs_[i].element_count, i + 1)));
  }
  return {};
}

std::expected<void, Failure> GpuDevice::Run(Loaded& kernel, Inputs inputs, Outputs outputs) {
  LF_TRY_VOID(SetInputs(kernel, inputs));
  const std::vector<CudaAddress>& buffers = kernel.copies_.front();
  for (std::size_t i = 0; i < kernel.specs_.size(); ++i) {
    if (kernel.specs_[i].role == BufferSpec::Role::kInput) continue;
    LF_TRY_VOID(Succeeds(driver_.Fill(buffers[i], kPoisonBits, kernel.specs_[i].element_count),
                         "filling its buffers"));
  }
  LF_TRY_VOID(StartAll(kernel));
  LF_TRY_VOID(Succeeds(driver_.Record(end_), "recording its end"));
  LF_TRY_VOID(WaitFor(end_, options_.run_limit));
  std::size_t output = 0;
  for (std::size_t i = 0; i < kernel.specs_.size(); ++i) {
    if (kernel.specs_[i].role != BufferSpec::Role::kOutput) continue;
    if (output >= outputs.size() || outputs[output].size() != kernel.specs_[i].element_count) {
      return std::unexpected(
          Failure{.code = FailureCode::kDeviceFault,
                  .message = fmt::format("output {} has the wrong size", output)});
    }
    LF_TRY_VOID(
        Succeeds(driver_.CopyOut(outputs[output].data(), buffers[i], outputs[output].size_bytes()),
                 "reading its outputs"));
    ++output;
  }
  return {};
}

std::expected<std::vector<looptree::Tensor>, Failure> GpuDevice::Run(
    Loaded& kernel, const std::vector<looptree::Tensor>& inputs) {
  const std::vector<std::span<const float>> from(inputs.begin(), inputs.end());
  std::vector<looptree::Tensor> outputs;
  for (const BufferSpec& spec : kernel.specs_) {
    if (spec.role == BufferSpec::Role::kOutput) outputs.emplace_back(spec.element_count);
  }
  const std::vector<std::span<float>> to(outputs.begin(), outputs.end());
  LF_TRY_VOID(Run(kernel, from, to));
  return outputs;
}

std::expected<int, Failure> GpuDevice::AddCopies(Loaded& kernel, int copies) {
  while (static_cast<int>(kernel.copies_.size()) < copies) {
    auto buffers = AllocateBuffers(kernel);
    if (!buffers) {
      if (buffers.error().code == FailureCode::kRunOom) break;
      return std::unexpected(std::move(buffers).error());
    }
    for (std::size_t i = 0; i < kernel.specs_.size(); ++i) {
      LF_TRY_VOID(Succeeds(driver_.StartCopy((*buffers)[i], kernel.copies_.front()[i],
                                             kernel.specs_[i].element_count * sizeof(float)),
                           "copying its buffers"));
    }
    kernel.copies_.push_back(*std::move(buffers));
  }
  return static_cast<int>(kernel.copies_.size());
}

std::expected<bool, Failure> GpuDevice::BatchRuns(Loaded& kernel, int runs) {
  std::vector<CudaDriver::Launch> launches;
  for (int run = 0; run < runs; ++run) {
    const auto copy = static_cast<std::size_t>(run) % kernel.copies_.size();
    for (CudaDriver::Launch& launch : LaunchesOf(kernel, copy)) {
      launches.push_back(std::move(launch));
    }
  }
  const CudaCode code = driver_.MakeBatch(launches, kernel.batch_);
  if (code == CudaCode::kNotSupported) return false;
  LF_TRY_VOID(Succeeds(code, "handing launches over together"));
  kernel.batch_runs_ = runs;
  return true;
}

std::expected<double, Failure> GpuDevice::ElapsedNs(const Meanwhile& meanwhile) {
  if (meanwhile) meanwhile();
  LF_TRY_VOID(WaitFor(end_, options_.run_limit));
  return NsBetween(begin_, end_);
}

std::expected<double, Failure> GpuDevice::NsBetween(CudaDriver::Event from, CudaDriver::Event to) {
  float milliseconds = 0;
  LF_TRY_VOID(Succeeds(driver_.ElapsedMilliseconds(from, to, milliseconds), "reading its time"));
  constexpr double kNsPerMs = 1e6;
  return double{milliseconds} * kNsPerMs;
}

std::expected<double, Failure> GpuDevice::Time(Loaded& kernel, int runs,
                                               const Meanwhile& meanwhile) {
  LF_TRY_VOID(Succeeds(driver_.Record(begin_), "recording its begin"));
  if (kernel.batch_runs_ > 0 && runs % kernel.batch_runs_ == 0) {
    for (int run = 0; run < runs; run += kernel.batch_runs_) {
      LF_TRY_VOID(Succeeds(driver_.StartBatch(kernel.batch_), "launching the kernel"));
    }
  } else {
    for (int run = 0; run < runs; ++run) {
      LF_TRY_VOID(StartAll(kernel, static_cast<std::size_t>(run) % kernel.copies_.size()));
    }
  }
  LF_TRY_VOID(Succeeds(driver_.Record(end_), "recording its end"));
  return ElapsedNs(meanwhile);
}

std::expected<std::vector<double>, Failure> GpuDevice::TimeLaunches(Loaded& kernel, int runs,
                                                                    Submission submission) {
  const std::vector<CudaDriver::Launch> launches = LaunchesOf(kernel, 0);
  const std::size_t count = launches.size() * static_cast<std::size_t>(runs);
  while (marks_.size() < count + 1) {
    CudaDriver::Event mark;
    LF_TRY_VOID(Succeeds(driver_.CreateEvent(mark), "making an event"));
    marks_.push_back(mark);
  }
  // The run after the evictions finds the cache as later ones do.
  if (submission == Submission::kHidden) {
    LF_TRY_VOID(StartEvictions(count));
    LF_TRY_VOID(StartAll(kernel));
  }
  LF_TRY_VOID(Succeeds(driver_.Record(marks_[0]), "recording its begin"));
  for (std::size_t i = 0; i < count; ++i) {
    LF_TRY_VOID(Succeeds(driver_.Start(launches[i % launches.size()]), "launching the kernel"));
    LF_TRY_VOID(Succeeds(driver_.Record(marks_[i + 1]), "recording a launch's end"));
  }
  LF_TRY_VOID(WaitFor(marks_[count], options_.run_limit));
  std::vector<double> times(launches.size());
  for (std::size_t i = 0; i < count; ++i) {
    LF_TRY(const double ns, NsBetween(marks_[i], marks_[i + 1]));
    times[i % launches.size()] += ns;
  }
  return times;
}

std::expected<double, Failure> GpuDevice::TimeQueued(const std::function<CudaCode()>& start,
                                                     int times) {
  LF_TRY_VOID(Succeeds(driver_.Record(begin_), "recording its begin"));
  for (int i = 0; i < times; ++i) LF_TRY_VOID(Succeeds(start(), "queueing"));
  LF_TRY_VOID(Succeeds(driver_.Record(end_), "recording its end"));
  return ElapsedNs();
}

std::expected<double, Failure> GpuDevice::TimeCopies(std::uint64_t bytes, int times) {
  CudaAddress memory[2] = {0, 0};
  const auto timed = [&]() -> std::expected<double, Failure> {
    for (CudaAddress& address : memory) {
      LF_TRY_VOID(Succeeds(driver_.Allocate(bytes, address), "allocating memory to copy"));
      LF_TRY_VOID(Succeeds(driver_.Fill(address, 0, bytes / sizeof(float)), "filling it"));
    }
    return TimeQueued([&] { return driver_.StartCopy(memory[0], memory[1], bytes); }, times);
  }();
  for (const CudaAddress address : memory) {
    if (address != 0 && !lost_) (void)driver_.Free(address);
  }
  return timed;
}

std::expected<void, Failure> GpuDevice::StartEvictions(std::size_t launches) {
  // Twice the cache size evicts nearly all of the kernel's data under any replacement policy.
  const auto bytes = static_cast<std::uint64_t>(facts_.l2_bytes) * 2;
  if (bytes == 0) return {};
  if (evictor_ == 0) {
    LF_TRY_VOID(Succeeds(driver_.Allocate(bytes, evictor_), "allocating memory to evict with"));
  }
  for (std::size_t i = 0; i < launches; ++i) {
    LF_TRY_VOID(
        Succeeds(driver_.StartFill(evictor_, 0, bytes / sizeof(float)), "evicting the cache"));
  }
  return {};
}

std::expected<double, Failure> GpuDevice::TimeCold(Loaded& kernel, const Meanwhile& meanwhile) {
  LF_TRY_VOID(StartEvictions(kernel.launch_count()));
  LF_TRY_VOID(Succeeds(driver_.Record(begin_), "recording its begin"));
  LF_TRY_VOID(StartAll(kernel));
  LF_TRY_VOID(Succeeds(driver_.Record(end_), "recording its end"));
  return ElapsedNs(meanwhile);
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
