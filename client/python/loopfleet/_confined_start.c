// Linked into each program whose output is compared (llvm_semantics.py): before main() it gives up
// every system call but those that computing and printing need. Any other kills the program.

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(call)                                          \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1),     \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

__attribute__((constructor)) static void Confine(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(write),        ALLOW(exit),           ALLOW(exit_group), ALLOW(brk),
      ALLOW(mmap),         ALLOW(munmap),         ALLOW(mremap),     ALLOW(fstat),
      ALLOW(newfstatat),   ALLOW(rt_sigreturn),   ALLOW(getrandom),  ALLOW(restart_syscall),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog program = {sizeof code / sizeof code[0], code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(125);
  }
}
