// 10^5 hostile lines: each gets one typed reply, in bounded memory and a bounded number of
// allocations. The processor time of the slowest is printed here and measured by bench/run.sh
// replay.

#include <gtest/gtest.h>
#include <malloc.h>
#include <nlohmann/json.hpp>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <new>
#include <sstream>

#include "client/cli/commands/replay.h"
#include "common/job/failure.h"
#include "tests/unit/client/cli/commands/hostile_line.h"

namespace {

// Allocations of this process through new and delete. One thread.
struct Heap {
  std::size_t live_bytes = 0;
  std::size_t peak_bytes = 0;
  std::size_t allocations = 0;
} g_heap;

void* Allocate(std::size_t size) {
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  g_heap.live_bytes += malloc_usable_size(memory);
  g_heap.peak_bytes = std::max(g_heap.peak_bytes, g_heap.live_bytes);
  ++g_heap.allocations;
  return memory;
}

void Release(void* memory) {
  if (memory == nullptr) return;
  g_heap.live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete[](void* memory) noexcept { Release(memory); }
void operator delete(void* memory, std::size_t) noexcept { Release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Release(memory); }

namespace loopfleet::client {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int kLines = 2'500;  // per test; some twenty times slower
#else
constexpr int kLines = 25'000;  // per test; four tests: 10^5
#endif
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
// A proxy for time: 10 ms are some 200,000 allocations.
constexpr std::size_t kMostAllocations = 200'000;

// Time of this thread only, so that other load on the machine does not count.
double ProcessorMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

struct Worst {
  double milliseconds = 0;
  std::size_t bytes = 0;
  std::size_t allocations = 0;
  std::size_t lines = 0;
  std::size_t trees = 0;  // lines answered with a tree
};

// Expects one line of JSON: a tree, or an error with a known code and a message.
void ExpectTyped(const std::string& output, bool& is_tree) {
  ASSERT_EQ(std::count(output.begin(), output.end(), '\n'), 1);
  const auto answer = nlohmann::json::parse(output, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << output.substr(0, 500);
  is_tree = !answer.contains("error");
  if (is_tree) {
    ASSERT_TRUE(answer.contains("tree_key") || answer.contains("loops_tensor") ||
                answer.contains("stride_tensor"))
        << output.substr(0, 500);
    return;
  }
  ASSERT_TRUE(ParseFailureCode(answer["error"].value("code", "")).has_value()) << output;
  ASSERT_FALSE(answer["error"].value("message", "").empty()) << output;
  ASSERT_LT(output.size(), 4096u) << output.substr(0, 5000);
}

void Answer(const HostileLines::Line& line, Worst& worst) {
  SCOPED_TRACE(testing::Message() << line.kind << ": " << line.text.substr(0, 500));
  std::istringstream in(line.text);
  std::ostringstream out;
  const std::size_t before = g_heap.live_bytes;
  const std::size_t allocations_before = g_heap.allocations;
  g_heap.peak_bytes = before;
  const double start = ProcessorMilliseconds();
  RunReplay(in, out);
  const double took = ProcessorMilliseconds() - start;
  const std::size_t bytes = g_heap.peak_bytes - before;
  const std::size_t allocations = g_heap.allocations - allocations_before;
  EXPECT_LE(bytes, kMostBytes);
  EXPECT_LE(allocations, kMostAllocations);
  bool is_tree = false;
  ExpectTyped(out.str(), is_tree);
  worst.milliseconds = std::max(worst.milliseconds, took);
  worst.bytes = std::max(worst.bytes, bytes);
  worst.allocations = std::max(worst.allocations, allocations);
  worst.trees += is_tree;
  ++worst.lines;
}

class HostileLinesTest : public testing::TestWithParam<int> {};

TEST_P(HostileLinesTest, EachGetsATypedAnswer) {
  HostileLines lines(static_cast<std::uint64_t>(GetParam()));
  std::map<std::string_view, Worst> worst;
  for (int i = 0; i < kLines; ++i) {
    const HostileLines::Line line = lines.Next();
    if (line.text.find_first_not_of(" \t\r") == std::string::npos) continue;
    Answer(line, worst[line.kind]);
    if (HasFailure()) return;
  }
  for (const auto& [kind, most] : worst) {
    std::printf("%-27s %6zu lines, %6zu trees; at most %6.2f ms, %6.2f MiB, %7zu allocations\n",
                std::string(kind).c_str(), most.lines, most.trees, most.milliseconds,
                static_cast<double>(most.bytes) / (1 << 20), most.allocations);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileLinesTest, testing::Range(1, 5));

}  // namespace
}  // namespace loopfleet::client
