#include "worker/gpu/device/gpu_child.h"

#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "worker/gpu/codegen/gpu_image.h"
#include "worker/gpu/device/device_sampler.h"
#include "worker/gpu/device/gpu_device.h"
#include "worker/gpu/device/gpu_message.h"
#include "worker/gpu/device/gpu_probe.h"
#include "worker/processes/child_message.h"
#include "worker/verification/mapped_buffers.h"

namespace loopfleet::worker {
namespace {

template <class Number>
std::vector<std::span<Number>> Numbers(const MappedBuffers& mapped) {
  std::vector<std::span<Number>> numbers;
  for (const std::span<std::byte> buffer : mapped.buffers()) {
    numbers.emplace_back(reinterpret_cast<Number*>(buffer.data()), buffer.size() / sizeof(float));
  }
  return numbers;
}

class GpuChild {
 public:
  GpuChild(Channel& channel, const GpuChildOptions& options)
      : channel_(channel), options_(options) {}

  int Run() {
    for (;;) {
      Result<Channel::Message> message = channel_.ReceiveWithFds(kMaxRequestBytes);
      if (!message) return kExitOk;
      const std::optional<GpuRequest> request = DecodeGpuRequest(message->bytes);
      if (!request) return kExitBadRequest;
      GpuReply reply;
      if (auto opened = Open(); !opened) {
        reply = {.answer = std::unexpected(std::move(opened).error()), .is_lost = true};
      } else {
        reply.answer =
            std::visit([&](const auto& body) { return Answer(body, message->fds); }, *request);
        reply.is_lost = device_->lost();
      }
      if (!channel_.Send(Encode(reply), std::nullopt)) return kExitOk;
    }
  }

 private:
  using Fds = std::vector<UniqueFd>;

  std::expected<void, Failure> Open() {
    if (device_) return {};
    const auto fault = [](const Error& error) {
      return std::unexpected(Failure{.code = FailureCode::kDeviceFault, .message = error.message});
    };
    PrepareCudaEnvironment();
    auto driver = OpenCudaDriver();
    if (!driver) return fault(driver.error());
    driver_ = *std::move(driver);
    auto device =
        GpuDevice::Open(*driver_, {.ordinal = options_.ordinal, .run_limit = options_.run_limit});
    if (!device) return fault(device.error());
    device_ = *std::move(device);
    // Sensors are optional. The daemon knows from the probe whether they exist.
    if (auto sensors = OpenNvml(device_->facts().bus_id)) sensors_ = *std::move(sensors);
    return {};
  }

  GpuAnswer Answer(const GpuCheckRequest&, Fds&) {
    const GpuCanary& canary = options_.canary;
    LF_TRY_VOID(device_->Check(canary.kernel, canary.code, canary.inputs, canary.outputs));
    return GpuDone{};
  }

  GpuAnswer Answer(const GpuRunRequest& request, Fds& fds) {
    loaded_.reset();  // first, so that two kernels are never loaded at once
    const std::optional<GpuImage> image = DecodeGpuImage(request.image);
    if (!image || fds.size() != 2) std::_Exit(kExitBadRequest);
    inputs_ = Map(request.inputs, fds[0].get(), MappedBuffers::Access::kReadOnly);
    outputs_ = Map(request.outputs, fds[1].get(), MappedBuffers::Access::kReadWrite);
    specs_ = request.specs;
    GpuKernel kernel;
    kernel.launches = image->launches;
    kernel.buffers = request.specs;
    LF_TRY(loaded_, device_->Load(kernel, image->code()));
    return RunOnce();
  }

  GpuAnswer Answer(const GpuTimeRequest& request, Fds&) {
    if (!loaded_) std::_Exit(kExitBadRequest);
    LF_TRY_VOID(device_->SetRandomInputs(*loaded_));
    LF_TRY(DeviceSamples samples,
           TakeDeviceSamples(*device_, *loaded_, request.policy, sensors_.get()));
    LF_TRY_VOID(RunOnce());
    return GpuAnswer(std::move(samples));
  }

  GpuAnswer Answer(const GpuLaunchesRequest&, Fds&) {
    if (!loaded_) std::_Exit(kExitBadRequest);
    LF_TRY_VOID(device_->SetRandomInputs(*loaded_));
    LF_TRY(LaunchTimes times, TakeLaunchTimes(*device_, *loaded_));
    LF_TRY_VOID(RunOnce());
    return GpuAnswer(std::move(times));
  }

  GpuAnswer RunOnce() {
    const auto mapped = Numbers<float>(inputs_);
    const std::vector<std::span<const float>> inputs(mapped.begin(), mapped.end());
    const std::vector<std::span<float>> outputs = Numbers<float>(outputs_);
    const std::chrono::nanoseconds start = device_->Now();
    LF_TRY_VOID(device_->Run(*loaded_, inputs, outputs));
    return GpuDone{.took_ns = static_cast<std::uint64_t>((device_->Now() - start).count())};
  }

  MappedBuffers Map(const SharedBuffers& shared, int fd, MappedBuffers::Access access) {
    auto mapped = MappedBuffers::Map(fd, shared.size, shared.buffers, access);
    if (mapped) return *std::move(mapped);
    std::_Exit(mapped.error().kind == ErrorKind::kFull ? kExitOutOfMemory : kExitBadRequest);
  }

  Channel& channel_;
  const GpuChildOptions& options_;
  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<GpuDevice> device_;
  std::unique_ptr<DeviceSensors> sensors_;
  std::unique_ptr<GpuDevice::Loaded> loaded_;
  std::vector<BufferSpec> specs_;
  MappedBuffers inputs_;
  MappedBuffers outputs_;
};

}  // namespace

int RunGpuChild(Channel& channel, const GpuChildOptions& options) {
  // Makes a driver's write to a file fail instead of killing this process.
  std::signal(SIGXFSZ, SIG_IGN);
  // Skips destructors, which would wait for a kernel that hangs.
  std::_Exit(GpuChild(channel, options).Run());
}

}  // namespace loopfleet::worker
