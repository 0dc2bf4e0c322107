// A preloaded library that makes a core's clock appear to have two states: for half of each second
// the monotonic clock runs an eighteenth slow, for the other half an eighteenth fast, so a kernel's
// speed differs by 12 %. The clock never runs backwards, is never off by more than 28 ms (system
// calls wait until true times), and is the same in all processes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

enum { kSecond = 1000000000 };

static int64_t bent(int64_t ns) {
  const int64_t part = ns % kSecond;
  return ns - (part < kSecond / 2 ? part : kSecond - part) / 18;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, time);
  if (result != 0 || clock != CLOCK_MONOTONIC) return result;
  const int64_t ns = bent((int64_t)time->tv_sec * kSecond + time->tv_nsec);
  time->tv_sec = ns / kSecond;
  time->tv_nsec = ns % kSecond;
  return 0;
}
