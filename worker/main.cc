#include <string_view>

#include "worker/cpu/cpu_backend.h"
#include "worker/daemon.h"
#include "worker/emit/emit_command.h"
#include "worker/gpu/device/gpu_machine.h"
#include "worker/isa/isa_support.h"
#include "worker/llvm_env/pass_jobs.h"
#include "worker/serve/serve_command.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "emit") {
    return loopfleet::worker::EmitMain(argc - 1, argv + 1);
  }
  if (argc > 1 && std::string_view(argv[1]) == "serve") {
    return loopfleet::worker::ServeMain(argc - 1, argv + 1, loopfleet::worker::CpuBackend());
  }
  // Passes on x86-64 only: C programs are compiled with this host's headers, and a program is to be
  // the same on all workers.
  loopfleet::worker::JobKinds kinds;
  using loopfleet::worker::CpuIsa;
  if (loopfleet::worker::SupportOf(CpuIsa::kBaseline).runs_here()) {
    kinds.push_back(loopfleet::worker::PassJobKind());
  }
  return loopfleet::worker::WorkerMain(argc, argv, loopfleet::worker::CpuBackend(), kinds,
                                       loopfleet::worker::MakeGpuMachine);
}
