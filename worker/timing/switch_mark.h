#pragma once
// SwitchMark: whether this thread has been off its core since it was asked last, without a system
// call. What restartable sequences (rseq, Linux 4.18) promise on the side: a thread may leave the
// address of a sequence behind in memory that it shares with the kernel, and whenever it is taken
// off its core somewhere else than in that sequence, the kernel clears the address. Ours is one
// that nobody ever runs. Belongs to the thread that calls.

namespace loopfleet::worker {

class SwitchMark {
 public:
  // From now on; by one thread's at a time.
  static void Set();
  // True: not once since Set(). False: perhaps, or it was never set, or nobody can tell here.
  static bool IsStanding();
};

}  // namespace loopfleet::worker
