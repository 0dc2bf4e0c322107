#pragma once
// HardwareFacts: what a figure was measured on. Two hosts of one class are expected to agree.

#include <cstdint>
#include <string>

#include "common/job/job_spec.h"

namespace loopfleet {

struct HardwareFacts {
  DeviceKind device = DeviceKind::kCpu;
  std::string hardware_class;   // what results are shared across: model, stepping, ISA, cores, caches
  std::string model;            // "Intel(R) Xeon(R) Processor @ 2.50GHz"
  std::string isa;              // "avx512", "avx2", "baseline", "neon"
  std::string microcode;        // "" where the host does not say
  double clock_mhz = 0;         // as the host states it; 0 where it does not
  std::uint32_t physical_cores = 0;
  std::uint32_t logical_cores = 0;
  std::uint64_t l1d_bytes = 0;  // of one core; 0 where the host does not say
  std::uint64_t l2_bytes = 0;
  std::uint64_t l3_bytes = 0;
  std::uint64_t memory_bytes = 0;
  std::string host;             // host name
  std::string kernel;           // operating system and its release
  friend bool operator==(const HardwareFacts&, const HardwareFacts&) = default;
};

// What made the kernel: another one may make another kernel of the same tree.
struct CompilerFacts {
  std::string llvm;       // "19.1.7"
  std::string tier;       // "general"
  std::string revision;   // of the lowering: changes whenever the code made for some tree may change
  friend bool operator==(const CompilerFacts&, const CompilerFacts&) = default;
};

// The class as text, made from the facts it stands for: "cpu:Intel(R) Xeon(R) ...:6.85.7:avx512:2c:l2=1024K:l3=36608K".
struct CpuIdentity {
  std::string vendor;
  std::string family_model_stepping;  // "6.85.7"
};
std::string CpuClassOf(const HardwareFacts& facts, const CpuIdentity& identity);

}  // namespace loopfleet
