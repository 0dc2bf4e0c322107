// The coordinator's throughput from accepted (on disk) to stored (on disk): real rows (20 actions,
// 15 samples), the real daemon, and stub workers that speak the real protocol, all on one disk.
//
//   bench_queue [--only CASE,CASE]

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "bench/cases/queue_case.h"

namespace loopfleet::bench {
namespace {

struct QueueCase {
  std::string_view name;
  Status (*run)();
};
constexpr QueueCase kCases[] = {
    {"batched", RunBatchedCase}, {"unbatched", RunUnbatchedCase}, {"latency", RunLatencyCase},
    {"repeats", RunRepeatsCase}, {"fleet", RunFleetCase},         {"recovery", RunRecoveryCase},
};

// Whether the comma-separated list contains `name`.
bool IsListed(std::string_view list, std::string_view name) {
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    if (list.substr(start, end - start) == name) return true;
    start = end + 1;
  }
  return false;
}

int Run(std::string_view only) {
  bool ran = false;
  for (const QueueCase& one : kCases) {
    if (!only.empty() && !IsListed(only, one.name)) continue;
    ran = true;
    if (const Status status = one.run(); !status) {
      fmt::print(stderr, "bench queue: {}: {}\n", one.name, status.error().message);
      return 1;
    }
  }
  if (ran) return 0;
  fmt::print(stderr, "bench queue: no case of {}\n", only);
  return 2;
}

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  if (argc == 1) return loopfleet::bench::Run("");
  if (argc == 3 && std::string_view(arguments[1]) == "--only") {
    return loopfleet::bench::Run(arguments[2]);
  }
  fmt::print(stderr,
             "usage: bench_queue [--only batched,unbatched,latency,repeats,fleet,recovery]\n");
  return 2;
}
