#pragma once
// WorkerConfig: all settings of a worker daemon, with their defaults.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"

namespace loopfleet::worker {

// The isolation without which a worker does not run.
enum class SandboxDemand { kAny, kFull };

struct WorkerConfig {
  std::string coordinator = "tcp://127.0.0.1:5571";  // its endpoint for workers
  std::string keys;                                  // directory; "": without keys
  std::string http = "127.0.0.1:0";                  // HOST:PORT of /metrics and /healthz
  std::vector<std::string> labels;                   // that jobs may demand
  std::string host;                                  // its host's name; "": the system's
  std::optional<int> cuda_device;                    // its number; none: kernels run on the CPU
  std::uint32_t slots = 1;                           // kernels timed at once; only 1 works
  std::chrono::milliseconds compile_limit{2'000};    // of one kernel
  std::chrono::milliseconds run_limit{10'000};       // of one run of a kernel
  std::uint32_t max_threads = 0;                     // that a kernel may use; 0: one for each core
  // Of computing a program's reference, once for each program.
  std::chrono::milliseconds reference_limit{60'000};
  SandboxDemand sandbox = SandboxDemand::kAny;
  // The clock that times are stated at; 0: as measured at start, rounded to 100 MHz. Workers whose
  // results are shared must have the same.
  double reference_clock_mhz = 0;
  Nanos awake = std::chrono::seconds(1);  // AwakeCore: after each job; 0: the core may sleep
  log::Level log_level = log::Level::kInfo;
  std::vector<std::string> unknown_variables;  // UnknownVariables(): to be logged

  // Leases held for each slot: the one being timed, those being prepared, and those that wait for
  // their next round.
  std::uint32_t credit_per_slot = 88;
  std::string llvm_programs;     // folder of bitcode (worker/llvm_env/programs); "": none
  std::size_t max_prepared = 4;  // kernels compiled and verified ahead
  Nanos canary_interval = std::chrono::seconds(2);  // DeviceHealth::Options::canary_interval
  // Threads that prepare kernels, each with children of its own; 0: one more than there are cores
  // beside the slot's, at most 4.
  std::uint32_t preparers = 0;
  std::size_t workload_cache_bytes = std::size_t{512} << 20;
  std::uint64_t compiler_private_bytes = std::uint64_t{2} << 30;
  std::uint64_t reference_private_bytes = std::uint64_t{16} << 30;
  std::uint64_t executor_private_bytes = std::uint64_t{1} << 30;
};

}  // namespace loopfleet::worker
