#include "worker/gpu/device/gpu_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "worker/gpu/device/clock_ramp.h"

namespace loopfleet::worker {
namespace {

constexpr int kThreads = 256;                // per block
constexpr int kBlocksPerMultiprocessor = 8;  // enough to keep it busy
constexpr int kIterations = 256;
constexpr int kChains = 8;  // independent chains of multiply-adds, to hide latency
constexpr int kSteps = 4;   // multiply-adds per chain and iteration
constexpr double kNsPerSecond = 1e9;
constexpr double kEnoughNs = 5e6;
constexpr int kTries = 4;

// Each thread runs kChains independent chains of multiply-adds and stores their sum, so that no
// chain can be optimised away.
std::string MultiplyAddPtx() {
  std::string body;
  for (int step = 0; step < kSteps; ++step) {
    for (int chain = 0; chain < kChains; ++chain) {
      body += fmt::format("  fma.rn.f32 %f{0}, %f{0}, %f8, %f9;\n", chain);
    }
  }
  std::string start;
  std::string sum;
  for (int chain = 0; chain < kChains; ++chain) {
    start += fmt::format("  cvt.rn.f32.u32 %f{}, %r1;\n", chain);
    if (chain > 0) sum += fmt::format("  add.rn.f32 %f0, %f0, %f{};\n", chain);
  }
  return fmt::format(R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry peak(.param .u64 peak_param_0)
{{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<10>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [peak_param_0];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.f32 %f8, 0f3F800000;
  mov.f32 %f9, 0f00000000;
{0}  mov.b32 %r3, 0;
  bra.uni $AGAIN;
$AGAIN:
{1}  add.s32 %r3, %r3, 1;
  setp.lt.s32 %p1, %r3, {2};
  @%p1 bra $AGAIN;
  bra.uni $DONE;
$DONE:
{3}  shl.b32 %r4, %r2, 8;
  add.s32 %r5, %r4, %r1;
  cvt.u64.u32 %rd2, %r5;
  shl.b64 %rd2, %rd2, 2;
  add.s64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f0;
  ret;
}}
)",
                     start, body, kIterations, sum);
}

// Nanoseconds of one run: the best of kTries batches of at least kEnoughNs each, at full clocks.
template <class TimeRuns>
std::expected<double, Failure> QuickestNs(const GpuDevice& device, const TimeRuns& time) {
  int runs = 1;
  for (;;) {
    LF_TRY(const double ns, time(runs));
    if (ns >= kEnoughNs || runs >= 1 << 16) break;
    runs *= 2;
  }
  LF_TRY_VOID(WarmUpClocks(device, [&] { return time(runs); }));
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    LF_TRY(const double ns, time(runs));
    if (ns > 0 && (best == 0 || ns / runs < best)) best = ns / runs;
  }
  return best;
}

}  // namespace

std::expected<DevicePeaks, Failure> MeasurePeaks(GpuDevice& device, PtxAssembler* assembler) {
  const auto blocks = static_cast<std::uint32_t>(std::max(device.facts().multiprocessors, 1) *
                                                 kBlocksPerMultiprocessor);
  GpuKernel kernel;
  kernel.launches = {{.symbol = "peak", .blocks = blocks, .threads = kThreads}};
  kernel.buffers = {{.role = BufferSpec::Role::kOutput, .element_count = blocks * kThreads}};
  std::string code = MultiplyAddPtx();
  if (assembler != nullptr) {
    auto cubin = assembler->Assemble(code, GpuArch{device.facts().compute_capability});
    if (!cubin) {
      return std::unexpected(
          Failure{.code = FailureCode::kCompileError, .message = cubin.error().message});
    }
    code = std::move(cubin->bytes);
  }
  LF_TRY(const auto loaded, device.Load(kernel, code));
  LF_TRY(const double ns, QuickestNs(device, [&](int runs) { return device.Time(*loaded, runs); }));
  const double flop = 2.0 * kIterations * kChains * kSteps * static_cast<double>(blocks) * kThreads;
  // Several times the cache size, but only a small part of the memory.
  constexpr std::int64_t kMost = std::int64_t{256} << 20;
  const auto bytes = static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(device.facts().memory_bytes / 8, std::int64_t{1} << 20, kMost));
  LF_TRY(const double copy_ns,
         QuickestNs(device, [&](int times) { return device.TimeCopies(bytes, times); }));
  DevicePeaks peaks;
  if (ns > 0) peaks.flop_per_second = flop / ns * kNsPerSecond;
  if (copy_ns > 0) {
    peaks.read_bytes_per_second = 2 * static_cast<double>(bytes) / copy_ns * kNsPerSecond;
    peaks.triad_bytes_per_second = peaks.read_bytes_per_second;
  }
  return peaks;
}

}  // namespace loopfleet::worker
