#pragma once
// HardwareFacts: what a figure was measured on. Two hosts of one class are expected to agree.

#include <cstdint>
#include <string>

#include "common/job/job_spec.h"

namespace loopfleet {

// The most that the device did when it was measured at the worker's start, at the reference clock;
// 0 where it was not.
struct DevicePeaks {
  double flop_per_second = 0;         // float32 multiply-adds, one thread
  double read_bytes_per_second = 0;   // from memory, one thread
  double triad_bytes_per_second = 0;  // a[i] = b[i] + s * c[i] in memory, one thread; 12 bytes each
  friend bool operator==(const DevicePeaks&, const DevicePeaks&) = default;
};

struct HardwareFacts {
  DeviceKind device = DeviceKind::kCpu;
  std::string
      hardware_class;     // what results are shared across: model, stepping, ISA, cores, caches
  std::string model;      // "Intel(R) Xeon(R) Processor @ 2.50GHz"
  std::string isa;        // "avx512", "avx2", "baseline", "neon"
  std::string microcode;  // "" where the host does not say
  // The reference clock: measured at start and rounded to 100 MHz; as the host states it where it
  // cannot be measured; 0 where neither.
  double clock_mhz = 0;
  std::uint32_t physical_cores = 0;
  std::uint32_t logical_cores = 0;
  std::uint64_t l1d_bytes = 0;  // of one core; 0 where the host does not say
  std::uint64_t l2_bytes = 0;
  std::uint64_t l3_bytes = 0;
  std::uint64_t memory_bytes = 0;
  DevicePeaks peaks;
  std::string host;    // host name
  std::string kernel;  // operating system and its release
  friend bool operator==(const HardwareFacts&, const HardwareFacts&) = default;
};

// What made the kernel: another one may make another kernel of the same tree.
struct CompilerFacts {
  std::string llvm;      // "19.1.7"
  std::string tier;      // "general"
  std::string revision;  // of the lowering: changes whenever the code made for some tree may change
  friend bool operator==(const CompilerFacts&, const CompilerFacts&) = default;
};

// The class as text, made from the facts it stands for: "cpu:Intel(R) Xeon(R)
// ...:6.85.7:avx512:2c:l2=1024K:l3=36608K".
struct CpuIdentity {
  std::string vendor;
  std::string family_model_stepping;  // "6.85.7"
};
std::string CpuClassOf(const HardwareFacts& facts, const CpuIdentity& identity);

}  // namespace loopfleet
