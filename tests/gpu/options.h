#pragma once
// Options: the command line of gpu_conformance, which gpu_conformance.cc documents.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::worker {

// The parts of the report, in the order in which they run.
inline constexpr std::string_view kParts[] = {"children",  "device", "conformance", "timing",
                                              "profile",   "search", "repeats",     "faults",
                                              "sanitizer", "after"};

struct Options {
  int device = 0;
  std::vector<std::string> parts;  // empty: all
  std::string alone;               // run this part, in this process
  int is_fake = 0;                 // 1: the driver is known to be the tests' fake
  std::string json;
  double seconds = 0;  // 0: no limit
  int trees = 500;
  std::uint64_t seed = 1;
  std::string fault;
  int only_trees = 0;
  int largest = 4096;
  int search_seconds = 60;
  int repeats = 100;
};

// False: the flags are wrong. Prints why.
bool ParseOptions(int argc, char** argv, Options& options);

}  // namespace loopfleet::worker
