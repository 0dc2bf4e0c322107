#pragma once
// Options: what gpu_conformance is told on its command line (gpu_conformance.cc says what each is).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::worker {

// In this order.
inline constexpr std::string_view kParts[] = {"children", "device",    "conformance",
                                              "timing",   "search",    "repeats",
                                              "faults",   "sanitizer", "after"};

struct Options {
  int device = 0;
  std::vector<std::string> parts;  // none: all
  std::string alone;               // this part, in this process
  int is_fake = 0;                 // what is in the driver's place is known to be the tests'
  std::string json;
  double seconds = 0;  // 0: no end
  int trees = 500;
  std::uint64_t seed = 1;
  std::string fault;
  int only_trees = 0;
  int largest = 4096;
  int search_seconds = 60;
  int repeats = 100;
};

// False: says what is wrong with them.
bool ParseOptions(int argc, char** argv, Options& options);

}  // namespace loopfleet::worker
