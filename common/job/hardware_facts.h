#pragma once
// HardwareFacts: the hardware that a figure was measured on. Hosts of one class are expected to
// agree.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/job/job_spec.h"

namespace loopfleet {

// The device's highest rates, measured by the worker at its start and stated at the reference
// clock. 0: not measured.
struct DevicePeaks {
  double flop_per_second = 0;         // float32 multiply-adds, one thread
  double read_bytes_per_second = 0;   // from memory, one thread
  double triad_bytes_per_second = 0;  // a[i] = b[i] + s * c[i] in memory, one thread; 12 bytes each
  friend bool operator==(const DevicePeaks&, const DevicePeaks&) = default;
};

struct HardwareFacts {
  DeviceKind device = DeviceKind::kCpu;
  // Results are shared within a class: model, stepping, ISA, cores, caches.
  std::string hardware_class;
  std::string model;      // "Intel(R) Xeon(R) Processor @ 2.50GHz"
  std::string isa;        // "avx512", "avx2", "baseline", "aarch64"
  std::string microcode;  // "": the host does not say
  // The reference clock: measured at start and rounded to 100 MHz, or what the host states if it
  // cannot be measured. 0: unknown.
  double clock_mhz = 0;
  std::uint32_t physical_cores = 0;
  std::uint32_t logical_cores = 0;
  // Cache sizes of the core that times kernels; 0: the host does not say.
  std::uint64_t l1d_bytes = 0;
  std::uint64_t l2_bytes = 0;
  std::uint64_t l3_bytes = 0;
  std::uint64_t memory_bytes = 0;
  DevicePeaks peaks;
  std::string host;    // host name
  std::string kernel;  // operating system and its release
  friend bool operator==(const HardwareFacts&, const HardwareFacts&) = default;
};

struct HardwareFact {
  std::string_view name;  // its column in the store
  std::string_view json;  // "": JSON does not have it
  bool is_rate = false;   // JSON has it in 1e9 per second, or null
};
// The fact that this member of HardwareFacts, or of DevicePeaks, holds.
template <auto kMember>
struct FactOf : HardwareFact {};

// visit(fact, value of each of `facts`), where the fact is a FactOf, in the order of the store's
// columns. Messages, the store and JSON go through it, and Python and the page through JSON.
template <class Visitor, class... Facts>
void ForEachFact(Visitor&& visit, Facts&... facts) {
  // By position, so that this does not compile when HardwareFacts or DevicePeaks grow.
  [[maybe_unused]] const auto complete = [](const HardwareFacts& all, const DevicePeaks& peaks) {
    [[maybe_unused]] const auto& [device, hardware_class, model, isa, microcode, clock_mhz,
                                  physical_cores, logical_cores, l1d_bytes, l2_bytes, l3_bytes,
                                  memory_bytes, its_peaks, host, kernel] = all;
    [[maybe_unused]] const auto& [flop_per_second, read_bytes_per_second, triad_bytes_per_second] =
        peaks;
  };
  const auto row = [&]<auto kMember>(const FactOf<kMember>& fact) {
    visit(fact, (facts.*kMember)...);
  };
  const auto peak = [&]<auto kMember>(const FactOf<kMember>& fact) {
    visit(fact, (facts.peaks.*kMember)...);
  };
  using All = HardwareFacts;
  row(FactOf<&All::device>{{"device", ""}});
  row(FactOf<&All::hardware_class>{{"class", "class"}});
  row(FactOf<&All::model>{{"model", "model"}});
  row(FactOf<&All::isa>{{"isa", "isa"}});
  row(FactOf<&All::microcode>{{"microcode", "microcode"}});
  row(FactOf<&All::clock_mhz>{{"clock_mhz", "clock_mhz"}});
  row(FactOf<&All::physical_cores>{{"physical_cores", ""}});
  row(FactOf<&All::logical_cores>{{"logical_cores", ""}});
  row(FactOf<&All::l1d_bytes>{{"l1d_bytes", ""}});
  row(FactOf<&All::l2_bytes>{{"l2_bytes", ""}});
  row(FactOf<&All::l3_bytes>{{"l3_bytes", ""}});
  row(FactOf<&All::memory_bytes>{{"memory_bytes", ""}});
  row(FactOf<&All::host>{{"host", "host"}});
  row(FactOf<&All::kernel>{{"kernel", "kernel"}});
  using Peaks = DevicePeaks;
  peak(FactOf<&Peaks::flop_per_second>{{"peak_flop_per_second", "peak_gflop_per_second", true}});
  peak(
      FactOf<&Peaks::read_bytes_per_second>{{"read_bytes_per_second", "read_gb_per_second", true}});
  peak(FactOf<&Peaks::triad_bytes_per_second>{
      {"triad_bytes_per_second", "triad_gb_per_second", true}});
}

// The compiler that built the kernel. Another one may build a different kernel from the same tree.
struct CompilerFacts {
  std::string llvm;      // "19.1.7"
  std::string tier;      // "general"
  std::string revision;  // the lowering's; changes whenever the code for some tree may change
  friend bool operator==(const CompilerFacts&, const CompilerFacts&) = default;
};

struct CpuIdentity {
  std::string vendor;                 // "GenuineIntel"
  std::string family_model_stepping;  // "6.85.7"
  std::string core_kind;              // "core", "atom"; "": all cores are of one kind
};
// The hardware class, composed of these facts, the kind of core only where a host has several:
//   cpu:GenuineIntel:6.85.7:Intel(R) Xeon(R) ...:avx512:2c4t:l1d=32K:l2=1024K:l3=36608K
//   cpu:GenuineIntel:6.151.2:12th Gen Intel(R) ...:avx2:16c24t:l1d=32K:l2=2048K:l3=30720K:atom
std::string CpuClassOf(const HardwareFacts& facts, const CpuIdentity& identity);

}  // namespace loopfleet
