#include "worker/cpu/cpu_backend.h"
#include "worker/daemon.h"

int main(int argc, char** argv) {
  return loopfleet::worker::WorkerMain(argc, argv, loopfleet::worker::CpuBackend());
}
