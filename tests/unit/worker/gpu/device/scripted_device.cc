#include "tests/unit/worker/gpu/device/scripted_device.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>
#include <vector>

#include "worker/gpu/device/gpu_message.h"
#include "worker/verification/mapped_buffers.h"

namespace loopfleet::worker {
namespace {

class Child {
 public:
  Child(Channel& channel, std::atomic<int>& checks, std::atomic<int>& failing,
        std::atomic<int>& children, std::atomic<int>& last_child)
      : channel_(channel),
        checks_(checks),
        failing_(failing),
        children_(children),
        last_child_(last_child) {}

  int Run() {
    for (;;) {
      Result<Channel::Message> message = channel_.ReceiveWithFds(kMaxRequestBytes);
      if (!message) return 0;
      const std::optional<GpuRequest> request = DecodeGpuRequest(message->bytes);
      if (!request) return 9;
      if (!std::exchange(was_asked_, true)) ++children_;  // a spare child gets no request
      last_child_ = ::getpid();
      GpuReply reply =
          std::visit([&](const auto& body) { return Answer(body, message->fds); }, *request);
      if (!channel_.Send(is_junk_ ? "this is no answer" : Encode(reply), std::nullopt)) return 0;
    }
  }

 private:
  using Fds = std::vector<UniqueFd>;

  static GpuReply Failed(FailureCode code, bool is_lost) {
    return {.answer = std::unexpected(Failure{.code = code, .message = "as the script says"}),
            .is_lost = is_lost};
  }

  GpuReply Answer(const GpuCheckRequest&, Fds&) {
    ++checks_;
    if (failing_ > 0) {
      --failing_;
      return Failed(FailureCode::kDeviceFault, true);
    }
    return {.answer = GpuDone{}};
  }

  GpuReply Answer(const GpuRunRequest& request, Fds& fds) {
    inputs_ = MappedBuffers::Map(fds.at(0).get(), request.inputs.size, request.inputs.buffers,
                                 MappedBuffers::Access::kReadOnly)
                  .value();
    outputs_ = MappedBuffers::Map(fds.at(1).get(), request.outputs.size, request.outputs.buffers,
                                  MappedBuffers::Access::kReadWrite)
                   .value();
    fate_ = static_cast<DeviceFate>(request.specs.back().element_count);
    switch (fate_) {
      case DeviceFate::kSticky: return Failed(FailureCode::kRunCrash, true);
      case DeviceFate::kHangNoticed: return Failed(FailureCode::kRunTimeout, true);
      case DeviceFate::kHang:
        for (;;) ::pause();
      case DeviceFate::kCrash: *reinterpret_cast<volatile int*>(16) = 1; break;
      case DeviceFate::kExit: ::_exit(0);
      case DeviceFate::kJunk: is_junk_ = true; break;
      case DeviceFate::kNoMemory: return Failed(FailureCode::kRunOom, false);
      case DeviceFate::kFault: return Failed(FailureCode::kDeviceFault, true);
      default: break;
    }
    Add(fate_ == DeviceFate::kWrongOutput ? 1.0F : 0.0F);
    return {.answer = GpuDone{.took_ns = 1000}};
  }

  GpuReply Answer(const GpuLaunchesRequest&, Fds&) {
    if (fate_ == DeviceFate::kStickyWhenTimed) return Failed(FailureCode::kRunCrash, true);
    Add(fate_ == DeviceFate::kWrongWhenTimed ? 1.0F : 0.0F);
    return {.answer = LaunchTimes{.plain_ns = 1000,
                                  .marked_ns = 1050,
                                  .runs = 4,
                                  .turns = std::vector<std::vector<double>>(7, {300, 500, 3200})}};
  }

  GpuReply Answer(const GpuTimeRequest&, Fds&) {
    if (fate_ == DeviceFate::kStickyWhenTimed) return Failed(FailureCode::kRunCrash, true);
    DeviceSamples samples;
    samples.samples.iterations = 8;
    samples.samples.ns.assign(5, 5000.0);
    samples.samples.flags.assign(5, kSampleAccepted);
    samples.state = DeviceState{.temperature_c = 50, .power_w = 200};
    Add(fate_ == DeviceFate::kWrongWhenTimed ? 1.0F : 0.0F);
    return {.answer = std::move(samples)};
  }

  void Add(float error) const {
    const auto floats = [](std::span<std::byte> bytes) {
      return std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
    };
    const auto a = floats(inputs_.buffers()[0]);
    const auto b = floats(inputs_.buffers()[1]);
    const auto sum = floats(outputs_.buffers()[0]);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i] + error;
  }

  Channel& channel_;
  std::atomic<int>& checks_;
  std::atomic<int>& failing_;
  std::atomic<int>& children_;
  std::atomic<int>& last_child_;
  bool was_asked_ = false;
  MappedBuffers inputs_;
  MappedBuffers outputs_;
  DeviceFate fate_{};
  bool is_junk_ = false;
};

}  // namespace

void ScriptedDevice::SetUp() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  shared_ = new (memory) Shared();
  programs_.by_role[ChildRole::kDevice].run = [shared = shared_](Channel& channel) {
    return Child(channel, shared->checks, shared->failing_checks, shared->children,
                 shared->last_child)
        .Run();
  };
  ChildrenFixture::SetUp();
}

void ScriptedDevice::TearDown() {
  fork_server_.reset();
  ::munmap(shared_, sizeof(Shared));
}

std::string ScriptedDevice::Uri(std::int64_t elements) {
  return fmt::format("benchmark://loop_tool-cuda-v0/{}", elements);
}

}  // namespace loopfleet::worker
