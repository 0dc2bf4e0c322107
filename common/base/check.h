#pragma once
// LF_CHECK(condition, format, args...): for conditions that only a bug in this code can make false.
// Prints where and why, then aborts. Never used on input, which gets a typed error.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#define LF_CHECK(condition, ...)                                                          \
  do {                                                                                    \
    if (!(condition)) [[unlikely]] {                                                      \
      fmt::print(stderr, "{}:{}: check failed: {}: {}\n", __FILE__, __LINE__, #condition, \
                 fmt::format(__VA_ARGS__));                                               \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)
