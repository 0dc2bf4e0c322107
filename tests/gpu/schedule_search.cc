#include "tests/gpu/schedule_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/random.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/tree/key.h"

namespace loopfleet::worker {
namespace {

// Schedules that give tiles of different sizes, most of them staged in shared memory.
constexpr const char* kKnown[] = {
    "",
    "swap_down",
    "down,swap_down",
    "down,down,swap_up,swap_up",
    "split_64,down,swap_down,down,swap_down,split_64,swap_up,swap_up",
    "split_128,down,swap_down,down,swap_down,split_128,swap_up,swap_up",
    "split_32,down,swap_down,down,swap_down,split_64,swap_up,swap_up",
    "split_64,down,swap_down,down,swap_down,split_128,swap_up,swap_up",
    "split_128,down,swap_down,down,swap_down,split_64,swap_up,swap_up",
};
constexpr const char* kSteps[] = {"up",       "down",     "swap_up",  "swap_down",
                                  "split_16", "split_32", "split_64", "split_128"};
constexpr std::size_t kMostSteps = 14;
constexpr std::size_t kKept = 6;

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + ",") {
    if (c == ',') {
      if (!word.empty()) words.push_back(word);
      word.clear();
    } else {
      word += c;
    }
  }
  return words;
}

std::string Text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

std::string Changed(const std::string& from, SplitMix64& random) {
  std::vector<std::string> words = Words(from);
  const auto step = [&] { return kSteps[random.Below(std::size(kSteps))]; };
  const std::uint64_t changes = 1 + random.Below(3);
  for (std::uint64_t i = 0; i < changes; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(random.Below(words.size() + 1));
    const std::uint64_t kind = random.Below(3);
    if (kind == 0 && words.size() < kMostSteps) {
      words.insert(words.begin() + at, step());
    } else if (at < static_cast<std::ptrdiff_t>(words.size())) {
      if (kind == 1) {
        words[static_cast<std::size_t>(at)] = step();
      } else {
        words.erase(words.begin() + at);
      }
    }
  }
  return Text(words);
}

}  // namespace

std::expected<FoundSchedule, Failure> SearchSchedule(
    int size, std::uint64_t seed, std::chrono::seconds budget,
    const std::function<std::expected<double, Failure>(const looptree::LoopTree&)>& time_tree) {
  const auto deadline = std::chrono::steady_clock::now() + budget;
  const looptree::BenchmarkUri uri{fmt::format("benchmark://mm-v0/mm{}_{}_{}", size, size, size)};
  SplitMix64 random(seed);
  std::set<looptree::TreeKey> seen;
  std::multimap<double, std::string> best;
  FoundSchedule found;
  std::optional<Failure> first;
  const auto attempt = [&](const std::string& actions) {
    const auto parsed = looptree::ParseActionList(actions);
    const auto replayed =
        looptree::Replay(uri, parsed.value(), {.on_illegal = looptree::OnIllegal::kSkip});
    if (!replayed || !seen.insert(looptree::KeyOf(replayed->tree)).second) return;
    ++found.tried;
    const auto ns = time_tree(replayed->tree);
    if (!ns) {
      ++found.failed;
      if (!first) first = ns.error();
      return;
    }
    best.emplace(*ns, actions);
    if (best.size() > kKept) best.erase(std::prev(best.end()));
  };
  const auto is_over = [&] { return std::chrono::steady_clock::now() >= deadline; };
  for (const char* actions : kKnown) {
    if (!is_over() || best.empty()) attempt(actions);
  }
  // A small product has few trees. The search ends after this many changes without a new one.
  for (int in_vain = 0; !is_over() && !best.empty() && in_vain < 10'000; ++in_vain) {
    const int before = found.tried;
    auto from = best.begin();
    std::advance(from, static_cast<std::ptrdiff_t>(random.Below(best.size())));
    attempt(Changed(from->second, random));
    if (found.tried > before) in_vain = 0;
  }
  if (best.empty()) {
    return std::unexpected(first.value_or(
        Failure{.code = FailureCode::kRunTimeout, .message = "no schedule was timed"}));
  }
  found.ns = best.begin()->first;
  found.actions = best.begin()->second;
  return found;
}

}  // namespace loopfleet::worker
