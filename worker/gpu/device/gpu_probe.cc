#include "worker/gpu/device/gpu_probe.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// glibc 2.36 declares these without C linkage.
extern "C" {
#include <sys/pidfd.h>
}

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "kernel/byte_codec.h"
#include "kernel/channel.h"
#include "worker/gpu/codegen/ptx_assembler.h"
#include "worker/gpu/device/gpu_canary.h"
#include "worker/gpu/device/gpu_device.h"
#include "worker/gpu/device/gpu_meter.h"

namespace loopfleet {

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, Error>& error) {
  archive.Enum(error.kind, ErrorKind::kSystem);
  archive(error.message);
}

}  // namespace loopfleet

namespace loopfleet::worker {

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, GpuProbe>& probe) {
  auto& [facts, peaks, no_peaks, assembler, assembler_name, assembler_place, why_driver,
         driver_version, no_sensors, max_clock_mhz, reading, canary_code] = probe;
  archive(facts.name, facts.bus_id, facts.compute_capability, facts.driver_version,
          facts.multiprocessors, facts.memory_bytes, facts.l2_bytes, facts.is_fake);
  archive(peaks.flop_per_second, peaks.read_bytes_per_second, peaks.triad_bytes_per_second);
  archive(no_peaks);
  archive.Enum(assembler, GpuAssembler::kDriver);
  archive(assembler_name, assembler_place, why_driver, driver_version, no_sensors, max_clock_mhz,
          reading, canary_code);
}

namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;

std::string DriverName(const CudaDriver::Facts& facts) {
  return fmt::format("driver of CUDA {}.{}", facts.driver_version / 1000,
                     facts.driver_version % 1000 / 10);
}

std::unexpected<Error> Unusable(int ordinal, const std::string& why) {
  return Fail(ErrorKind::kUnavailable, fmt::format("cuda:{} cannot be used: {}", ordinal, why));
}

// nvJitLink, if the driver accepts its cubin and the device computes correctly with it. Otherwise
// null: the driver assembles, and `probe` says why.
Result<std::unique_ptr<PtxAssembler>> ChooseAssembler(GpuDevice& device, const GpuCanary& canary,
                                                      GpuProbe& probe) {
  const GpuArch arch{probe.facts.compute_capability};
  const auto check = [&](const std::string& code) {
    return device.Check(canary.kernel, code, canary.inputs, canary.outputs);
  };
  // The first may be too old to be used, or for this device.
  bool is_opened = false;
  for (const std::string& place : NvJitLinkPlaces()) {
    auto opened = OpenNvJitLink(place);
    if (!opened) {
      if (!is_opened) probe.why_driver = opened.error().message;
      is_opened = is_opened || opened.error().kind != ErrorKind::kNotFound;
      continue;
    }
    is_opened = true;
    auto cubin = (*opened)->Assemble(canary.kernel.ptx, arch);
    if (!cubin) {
      probe.why_driver = cubin.error().message;
    } else if (auto checked = check(cubin->bytes); checked) {
      probe.assembler = GpuAssembler::kNvJitLink;
      probe.assembler_name = (*opened)->Version();
      probe.assembler_place = place;
      probe.why_driver.clear();
      probe.canary_code = std::move(cubin->bytes);
      return *std::move(opened);
    } else if (checked.error().code != FailureCode::kCompileError) {
      return Fail(ErrorKind::kUnavailable, checked.error().message);
    } else {
      probe.why_driver = fmt::format("it does not take the code of {}: {}", (*opened)->Version(),
                                     checked.error().message);
    }
  }
  if (auto checked = check(canary.kernel.ptx); !checked) {
    return Fail(ErrorKind::kUnavailable, checked.error().message);
  }
  probe.assembler = GpuAssembler::kDriver;
  probe.assembler_name = DriverName(probe.facts);
  probe.canary_code = canary.kernel.ptx;
  return nullptr;
}

// Why peaks measured now would be too low; empty: they would not. Too low ones would refuse good
// figures as long as the worker lives.
std::string DisturbanceOf(DeviceSensors* sensors) {
  if (sensors == nullptr) return "";
  // This process itself has a context.
  if (sensors->Processes().value_or(1) > 1) return "another process has a context on the device";
  return ThrottleText(sensors->Read().throttle_reasons & kThrottledReasons);
}

// Leaves the peaks at 0 if each attempt is disturbed.
std::expected<void, Failure> FindPeaks(GpuDevice& device, PtxAssembler* assembler,
                                       DeviceSensors* sensors, GpuProbe& probe) {
  constexpr int kAttempts = 3;
  constexpr std::chrono::milliseconds kPause{500};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kPause);
    probe.no_peaks = DisturbanceOf(sensors);
    if (!probe.no_peaks.empty()) continue;
    LF_TRY(probe.peaks, MeasurePeaks(device, assembler));
    probe.no_peaks = DisturbanceOf(sensors);
    if (probe.no_peaks.empty()) return {};
  }
  probe.peaks = {};
  return {};
}

Result<GpuProbe> Round(int ordinal) {
  PrepareCudaEnvironment();
  LF_TRY(const auto driver, OpenCudaDriver());
  LF_TRY(const auto device, GpuDevice::Open(*driver, {.ordinal = ordinal}));
  GpuProbe probe;
  probe.facts = device->facts();
  if (GpuArch{probe.facts.compute_capability} < kOldestArch) {
    return Unusable(ordinal, fmt::format("{} has compute capability {}.{}; {} is the oldest that "
                                         "code is made for",
                                         probe.facts.name, probe.facts.compute_capability / 10,
                                         probe.facts.compute_capability % 10, kOldestArch.Name()));
  }
  LF_TRY(const GpuCanary canary, MakeGpuCanary(GpuArch{probe.facts.compute_capability}));
  const auto assembler = ChooseAssembler(*device, canary, probe);
  if (!assembler) return Unusable(ordinal, assembler.error().message);
  auto sensors = OpenNvml(probe.facts.bus_id);
  const auto peaks =
      FindPeaks(*device, assembler->get(), sensors ? sensors->get() : nullptr, probe);
  if (!peaks) return Unusable(ordinal, peaks.error().message);
  if (sensors) {
    probe.driver_version = (*sensors)->DriverVersion();
    probe.max_clock_mhz = (*sensors)->MaxClockMhz();
    probe.reading = (*sensors)->Read();
  } else {
    probe.no_sensors = sensors.error().message;
  }
  return probe;
}

// The process' status. kTimeout: it did not end in time, and is not waited for any longer: one that
// sleeps in the driver does not end when it is killed.
Result<int> WaitForEnd(pid_t pid, std::chrono::milliseconds limit) {
  const UniqueFd pidfd(::pidfd_open(pid, 0));
  if (!pidfd) return Fail(ErrorKind::kSystem, fmt::format("pidfd_open: {}", std::strerror(errno)));
  pollfd item{pidfd.get(), POLLIN, 0};
  int ended = 0;
  while ((ended = ::poll(&item, 1, static_cast<int>(limit.count()))) < 0 && errno == EINTR) {
  }
  if (ended <= 0) return Fail(ErrorKind::kTimeout, "it does not end");
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string EndOf(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

void PrepareCudaEnvironment() {
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  ::setenv("CUDA_CACHE_DISABLE", "1", 1);
}

Result<GpuProbe> ProbeGpu(int ordinal, std::chrono::milliseconds limit) {
  LF_TRY(auto ends, Channel::MakePair());
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(ErrorKind::kSystem, fmt::format("fork: {}", std::strerror(errno)));
  if (pid == 0) {
    ::prctl(PR_SET_NAME, "lf-gpu-probe");
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const Status sent = ends.second.Send(EncodeBytes(Round(ordinal)), std::nullopt);
    // Skips destructors, which would wait for a kernel that hangs.
    ::_exit(sent ? 0 : 1);
  }
  ends.second.TakeFd().Reset();
  const Result<std::string> said =
      ends.first.Receive(Instant(std::chrono::steady_clock::now()) + limit, kMostBytes);
  if (!said) ::kill(pid, SIGKILL);
  constexpr std::chrono::seconds kKillLimit{10};
  const Result<int> status = WaitForEnd(pid, said ? limit : kKillLimit);
  if (!status) {
    return Fail(status.error().kind, fmt::format("cuda:{}: the process that tried it: {}", ordinal,
                                                 status.error().message));
  }
  if (said) {
    const Result<GpuProbe> malformed =
        Fail(ErrorKind::kCorrupt, "malformed reply from the device probe");
    return DecodeBytes<Result<GpuProbe>>(*said).value_or(malformed);
  }
  if (said.error().kind == ErrorKind::kTimeout) {
    return Fail(ErrorKind::kTimeout,
                fmt::format("cuda:{} did not answer within {} s", ordinal, limit.count() / 1000));
  }
  return Unusable(ordinal, fmt::format("trying it ended with {}", EndOf(*status)));
}

}  // namespace loopfleet::worker
