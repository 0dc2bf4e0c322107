#include "worker/gpu/device/gpu_probe.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "kernel/byte_codec.h"
#include "kernel/channel.h"
#include "worker/gpu/codegen/ptx_assembler.h"
#include "worker/gpu/device/gpu_canary.h"
#include "worker/gpu/device/gpu_device.h"
#include "worker/gpu/device/gpu_meter.h"

namespace loopfleet::worker {
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
  auto opened = OpenNvJitLink();
  if (opened) {
    auto cubin = (*opened)->Assemble(canary.kernel.ptx, arch);
    if (!cubin) {
      probe.why_driver = cubin.error().message;
    } else if (auto checked = check(cubin->bytes); checked) {
      probe.assembler = GpuAssembler::kNvJitLink;
      probe.assembler_name = (*opened)->Version();
      probe.canary_code = std::move(cubin->bytes);
      return *std::move(opened);
    } else if (checked.error().code != FailureCode::kCompileError) {
      return Fail(ErrorKind::kUnavailable, checked.error().message);
    } else {
      probe.why_driver = fmt::format("it does not take the code of {}: {}", (*opened)->Version(),
                                     checked.error().message);
    }
  } else {
    probe.why_driver = opened.error().message;
  }
  if (auto checked = check(canary.kernel.ptx); !checked) {
    return Fail(ErrorKind::kUnavailable, checked.error().message);
  }
  probe.assembler = GpuAssembler::kDriver;
  probe.assembler_name = DriverName(probe.facts);
  probe.canary_code = canary.kernel.ptx;
  return nullptr;
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
  auto peaks = MeasurePeaks(*device, assembler->get());
  if (!peaks) return Unusable(ordinal, peaks.error().message);
  probe.peaks = *peaks;
  auto sensors = OpenNvml(probe.facts.bus_id);
  if (sensors) {
    probe.driver_version = (*sensors)->DriverVersion();
    probe.max_clock_mhz = (*sensors)->MaxClockMhz();
    probe.reading = (*sensors)->Read();
  } else {
    probe.no_sensors = sensors.error().message;
  }
  return probe;
}

std::string Encode(const Result<GpuProbe>& result) {
  ByteWriter writer;
  writer.Put(static_cast<std::uint8_t>(result.has_value()));
  if (!result) {
    writer.Put(static_cast<std::int32_t>(result.error().kind));
    writer.PutText(result.error().message);
    return writer.Take();
  }
  const CudaDriver::Facts& facts = result->facts;
  writer.PutText(facts.name);
  writer.PutText(facts.bus_id);
  for (const int number : {facts.compute_capability, facts.driver_version, facts.multiprocessors,
                           static_cast<int>(facts.is_fake), static_cast<int>(result->assembler)}) {
    writer.Put(number);
  }
  writer.Put(facts.memory_bytes);
  writer.Put(facts.l2_bytes);
  const SensorReading& reading = result->reading;
  for (const double number :
       {result->peaks.flop_per_second, result->peaks.read_bytes_per_second,
        result->peaks.triad_bytes_per_second, result->max_clock_mhz, reading.clock_mhz,
        reading.memory_clock_mhz, reading.temperature_c, reading.power_w}) {
    writer.Put(number);
  }
  writer.Put(reading.throttle_reasons);
  for (const std::string& text :
       {result->assembler_name, result->why_driver, result->driver_version, result->no_sensors,
        result->canary_code}) {
    writer.PutText(text);
  }
  return writer.Take();
}

Result<GpuProbe> Decode(const std::string& bytes) {
  ByteReader reader(bytes);
  if (reader.Get<std::uint8_t>() == 0) {
    const auto kind = static_cast<ErrorKind>(reader.Get<std::int32_t>());
    return Fail(kind, std::string(reader.GetText()));
  }
  GpuProbe probe;
  probe.facts.name = reader.GetText();
  probe.facts.bus_id = reader.GetText();
  probe.facts.compute_capability = reader.Get<int>();
  probe.facts.driver_version = reader.Get<int>();
  probe.facts.multiprocessors = reader.Get<int>();
  probe.facts.is_fake = reader.Get<int>() != 0;
  probe.assembler = static_cast<GpuAssembler>(reader.Get<int>());
  probe.facts.memory_bytes = reader.Get<std::int64_t>();
  probe.facts.l2_bytes = reader.Get<std::int64_t>();
  for (double* number :
       {&probe.peaks.flop_per_second, &probe.peaks.read_bytes_per_second,
        &probe.peaks.triad_bytes_per_second, &probe.max_clock_mhz, &probe.reading.clock_mhz,
        &probe.reading.memory_clock_mhz, &probe.reading.temperature_c, &probe.reading.power_w}) {
    *number = reader.Get<double>();
  }
  probe.reading.throttle_reasons = reader.Get<std::uint64_t>();
  for (std::string* text : {&probe.assembler_name, &probe.why_driver, &probe.driver_version,
                            &probe.no_sensors, &probe.canary_code}) {
    *text = reader.GetText();
  }
  if (!reader.AtEnd()) return Fail(ErrorKind::kCorrupt, "malformed reply from the device probe");
  return probe;
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
    const Status sent = ends.second.Send(Encode(Round(ordinal)), std::nullopt);
    // Skips destructors, which would wait for a kernel that hangs.
    ::_exit(sent ? 0 : 1);
  }
  ends.second.TakeFd().Reset();
  const Result<std::string> said =
      ends.first.Receive(Instant(std::chrono::steady_clock::now()) + limit, kMostBytes);
  if (!said) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (said) return Decode(*said);
  if (said.error().kind == ErrorKind::kTimeout) {
    return Fail(ErrorKind::kTimeout,
                fmt::format("cuda:{} did not answer within {} s", ordinal, limit.count() / 1000));
  }
  return Unusable(ordinal, fmt::format("trying it ended with {}", EndOf(status)));
}

}  // namespace loopfleet::worker
