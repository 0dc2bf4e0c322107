#include "worker/timing/load_latency.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "worker/isa/processor.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLeastLines = 16;
// Of a pass: 0.2 ms from the first cache, 20 ms from memory.
constexpr std::size_t kLoads = 200'000;
constexpr std::size_t kPasses = 4;  // the first one is a warm-up

struct alignas(kLineBytes) Line {
  const Line* next = nullptr;
};

// Links the lines into one cycle, in random order.
void Link(Line* lines, std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  SplitMix64 random(count);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  for (std::size_t i = 0; i < count; ++i) {
    lines[order[i]].next = &lines[order[(i + 1) % count]];
  }
}

}  // namespace

std::optional<double> LoadLatencyNs(const Stopwatch& stopwatch, std::size_t bytes) {
  const std::size_t count = std::max(bytes / kLineBytes, kLeastLines);
  const std::size_t size = (count * kLineBytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(kPageBytes, size),
                                                           &std::free);
  if (!memory) return std::nullopt;
  Line* const lines = static_cast<Line*>(memory.get());
  for (std::size_t i = 0; i < count; ++i) new (&lines[i]) Line;
  Link(lines, count);
  // With this many lines none is read twice: all are to come from memory, however large a cache is.
  // Again in each pass, as processors also load the neighbours of a line.
  const bool is_memory = count > kPasses * kLoads;
  double least = std::numeric_limits<double>::infinity();
  const Line* at = lines;
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    if (is_memory) EvictFromCaches(lines, count * kLineBytes);
    const std::uint64_t start = stopwatch.NowNs();
    for (std::size_t i = 0; i < kLoads; ++i) {
      at = at->next;
      asm volatile("" : "+r"(at));  // the compiler must follow every link
    }
    const auto took = static_cast<double>(stopwatch.NowNs() - start);
    if (pass > 0) least = std::min(least, took / kLoads);
  }
  return least;
}

}  // namespace loopfleet::worker
