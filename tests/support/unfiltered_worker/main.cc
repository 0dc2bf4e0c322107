// loopfleet-worker as on a host without seccomp, such as old containers: it first takes from itself
// the right to install filters.

#include <linux/prctl.h>
#include <seccomp.h>

#include <cerrno>

#include "common/base/check.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/daemon.h"
#include "worker/gpu/device/gpu_machine.h"
#include "worker/llvm_env/pass_jobs.h"

int main(int argc, char** argv) {
  void* const filter = ::seccomp_init(SCMP_ACT_ALLOW);
  LF_CHECK(filter != nullptr, "seccomp_init");
  LF_CHECK(::seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(seccomp), 0) == 0, "seccomp");
  LF_CHECK(::seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prctl), 1,
                              SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP)) == 0,
           "prctl");
  LF_CHECK(::seccomp_load(filter) == 0, "seccomp_load");
  ::seccomp_release(filter);
  return loopfleet::worker::WorkerMain(argc, argv, loopfleet::worker::CpuBackend(),
                                       {loopfleet::worker::PassJobKind()},
                                       loopfleet::worker::MakeGpuMachine);
}
