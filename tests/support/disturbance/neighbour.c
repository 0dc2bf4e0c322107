// A noisy neighbour on one core: multiply-adds for half of each second, asleep for the other half.
//   neighbour CORE      runs until it is killed or its parent ends
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  if (argc != 2) return fputs("usage: neighbour CORE\n", stderr), 2;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET((size_t)atoi(argv[1]), &core);
  if (sched_setaffinity(0, sizeof core, &core) != 0) return perror("neighbour"), 1;
  volatile double sums[8] = {0};
  for (;;) {
    for (const double end = now() + 0.5; now() < end;) {
      for (int i = 0; i < 10000; ++i) sums[i % 8] = sums[i % 8] * 1.0000001 + 1e-9;
    }
    const struct timespec half = {.tv_nsec = 500000000};
    nanosleep(&half, NULL);
  }
}
