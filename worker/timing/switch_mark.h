#pragma once
// SwitchMark: whether this thread was taken off its core while it computed, without a system call.
// What restartable sequences (rseq, Linux 4.18) promise on the side: a thread may leave the address
// of a sequence behind in memory that it shares with the kernel, and when it is interrupted
// somewhere else than in that sequence and others run, the kernel clears the address. Ours is one
// that nobody ever runs. Most kernels clear it after a switch within a system call, too. Belongs to
// the thread that calls.

namespace loopfleet::worker {

class SwitchMark {
 public:
  static void Set();  // from now on
  // True: not once since Set(), outside of system calls. False: perhaps, or it was never set, or
  // nobody can tell here.
  static bool IsStanding();
};

}  // namespace loopfleet::worker
