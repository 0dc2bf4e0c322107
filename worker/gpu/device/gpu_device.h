#pragma once
// GpuDevice: one GPU, for a process that runs kernels. Loads kernels, gives them memory full of
// NaN, runs and times them, and detects when the device or this process' context is unusable. Used
// by one thread; one object per device and process.
//
// After a sticky CUDA error, or a kernel that does not end, the object is `lost`: each call fails
// at once with DEVICE_FAULT, and the process must be replaced.

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "common/looptree/interpreter/interpret.h"
#include "worker/gpu/codegen/gpu_kernel.h"
#include "worker/gpu/device/cuda_driver.h"

namespace loopfleet::worker {

// The resolution of the device's clock, as NVIDIA states it for events.
inline constexpr double kEventTickNs = 500;

class GpuDevice {
 public:
  using Clock = std::function<std::chrono::nanoseconds()>;  // since any fixed moment
  struct Options {
    int ordinal = 0;
    std::chrono::milliseconds run_limit{10'000};  // for one run of a kernel
    Clock clock;                                  // none: the steady clock
  };
  // kNotFound: no such device. kUnavailable: the device cannot be used.
  static Result<std::unique_ptr<GpuDevice>> Open(CudaDriver& driver, const Options& options);
  ~GpuDevice();
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  const CudaDriver::Facts& facts() const { return facts_; }
  bool lost() const { return lost_; }
  std::chrono::nanoseconds Now() const { return options_.clock(); }

  // Code (a cubin for this device, or PTX for the driver to assemble) with memory for its buffers.
  class Loaded {
   public:
    ~Loaded();
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;
    std::uint64_t bytes() const;  // of one copy of the buffers
    std::size_t launch_count() const { return launches_.size(); }
    const std::vector<CudaAddress>& buffers() const { return copies_.front(); }

   private:
    friend class GpuDevice;
    explicit Loaded(GpuDevice& device) : device_(device) {}
    GpuDevice& device_;
    CudaDriver::Module module_;
    std::vector<BufferSpec> specs_;
    std::vector<std::vector<CudaAddress>> copies_;  // of the buffers; Run uses the first
    std::vector<CudaDriver::Launch> launches_;      // without arguments
    CudaDriver::Batch batch_;                       // of batch_runs_ runs; null: none
    int batch_runs_ = 0;
  };
  // COMPILE_ERROR: the driver rejects the code. RUN_OOM: not enough memory.
  std::expected<std::unique_ptr<Loaded>, Failure> Load(const GpuKernel& kernel,
                                                       const std::string& code);

  using Inputs = std::span<const std::span<const float>>;
  using Outputs = std::span<const std::span<float>>;
  // Copies the inputs in, fills outputs and scratch with poison
  // (worker/verification/verification.h), runs the kernel once, and copies the outputs out.
  // Failures: RUN_TIMEOUT, RUN_CRASH.
  std::expected<void, Failure> Run(Loaded& kernel, Inputs inputs, Outputs outputs);
  std::expected<std::vector<looptree::Tensor>, Failure> Run(
      Loaded& kernel, const std::vector<looptree::Tensor>& inputs);

  // ---- timing, by the device's own clock, on the current contents of the buffers

  std::expected<void, Failure> SetInputs(Loaded& kernel, Inputs inputs);  // of every copy
  // Fills the inputs for timing with random floats that use all mantissa bits, because they affect
  // the device's power. From 0.5 to 1.5, valid for every operation. The same values each time.
  std::expected<void, Failure> SetRandomInputs(Loaded& kernel);
  // Rotates later runs over this many copies of the buffers, so that a run does not find its
  // buffers in the cache; over fewer if memory runs out. The copies hold the buffers' contents.
  // Returns the number of copies.
  std::expected<int, Failure> AddCopies(Loaded& kernel, int copies);
  // Submits later runs this many at a time, a multiple of the copies. False: this driver cannot.
  std::expected<bool, Failure> BatchRuns(Loaded& kernel, int runs);
  // Called once, after everything is submitted and while the device is busy.
  using Meanwhile = std::function<void()>;
  // Nanoseconds of `runs` runs in a row, a multiple of those submitted together.
  std::expected<double, Failure> Time(Loaded& kernel, int runs, const Meanwhile& meanwhile = {});
  // Nanoseconds of each launch, in total over `runs` runs in a row, between events before and after
  // it. kHidden: the device is kept busy until the host has submitted much of them.
  enum class Submission : std::uint8_t { kSeen, kHidden };
  std::expected<std::vector<double>, Failure> TimeLaunches(Loaded& kernel, int runs,
                                                           Submission submission);
  // Nanoseconds of `times` copies of `bytes` bytes within the device's memory. RUN_OOM: not enough
  // memory.
  std::expected<double, Failure> TimeCopies(std::uint64_t bytes, int times);
  // Nanoseconds of `times` calls of `start`, which queues work on the driver's stream.
  std::expected<double, Failure> TimeQueued(const std::function<CudaCode()>& start, int times);
  // Nanoseconds of one run after the cache was filled with other data.
  std::expected<double, Failure> TimeCold(Loaded& kernel, const Meanwhile& meanwhile = {});

  // Checks that the device computes the canary correctly and that its memory keeps what is written.
  // To be run after any fault, before the next lease. DEVICE_FAULT if either check fails.
  std::expected<void, Failure> Check(const GpuKernel& canary, const std::string& code,
                                     const std::vector<looptree::Tensor>& inputs,
                                     const std::vector<looptree::Tensor>& outputs);

 private:
  GpuDevice(CudaDriver& driver, const Options& options) : driver_(driver), options_(options) {}
  // The failure that `code` means for a job. Sets `lost_` if the code is sticky.
  Failure FailureOf(CudaCode code, std::string_view doing);
  std::expected<void, Failure> Succeeds(CudaCode code, std::string_view doing);
  std::expected<void, Failure> StartAll(const Loaded& kernel, std::size_t copy = 0);
  std::vector<CudaDriver::Launch> LaunchesOf(const Loaded& kernel, std::size_t copy) const;
  std::expected<std::vector<CudaAddress>, Failure> AllocateBuffers(const Loaded& kernel);
  std::expected<void, Failure> SetInput(Loaded& kernel, std::size_t input,
                                        std::span<const float> values);
  std::expected<double, Failure> ElapsedNs(const Meanwhile& meanwhile = {});
  std::expected<double, Failure> NsBetween(CudaDriver::Event from, CudaDriver::Event to);
  // Queues the filling of the cache with other data, once for each launch that follows. That keeps
  // the device busy while the host submits them: a device that waits for the host would show the
  // host's time.
  std::expected<void, Failure> StartEvictions(std::size_t launches);
  // Waits until all started work has ended. At the limit the device is lost, because a running
  // kernel cannot be stopped.
  std::expected<void, Failure> WaitFor(CudaDriver::Event event, std::chrono::nanoseconds limit);
  std::expected<void, Failure> CheckMemory();

  CudaDriver& driver_;
  Options options_;
  CudaDriver::Facts facts_;
  CudaDriver::Event begin_;
  CudaDriver::Event end_;
  std::vector<CudaDriver::Event> marks_;  // of TimeLaunches
  CudaAddress evictor_ = 0;               // memory that evicts the cache; 0: not allocated yet
  bool entered_ = false;
  bool lost_ = false;
};

}  // namespace loopfleet::worker
