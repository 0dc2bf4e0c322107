#pragma once
// LF_CHECK(condition, format, args...): the condition can only be false through a bug of ours.
// Prints where and why, then aborts. Never used on input: that gets a typed error.

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
