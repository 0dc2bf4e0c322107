#include "client/cli/text/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace loopfleet::client {
namespace {

constexpr int kWidth = 30;
constexpr auto kLeastPause = std::chrono::milliseconds(50);  // between two redraws

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

ProgressBar::ProgressBar()
    : can_rewrite_(::isatty(STDERR_FILENO) == 1 && Variable("TERM") != "dumb" &&
                   !Variable("TERM").empty()),
      may_colour_(can_rewrite_ && Variable("NO_COLOR").empty()) {}

void ProgressBar::Show(const Progress& progress) {
  if (!can_rewrite_ || progress.total == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (shown_ && progress.done < progress.total && now - last_ < kLeastPause) return;
  last_ = now;
  shown_ = true;
  const int filled = static_cast<int>(std::uint64_t{progress.done} * kWidth / progress.total);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const std::string failed =
      progress.failed == 0 ? "" : fmt::format(", {} failed", progress.failed);
  fmt::print(stderr, "\r\033[K{}[{}{}]{} {}/{}{}, {:.0f}/s", may_colour_ ? "\033[32m" : "",
             std::string(filled, '#'), std::string(kWidth - filled, '.'),
             may_colour_ ? "\033[0m" : "", progress.done, progress.total, failed,
             seconds > 0 ? progress.done / seconds : 0.0);
  std::fflush(stderr);
}

void ProgressBar::ShowText(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!can_rewrite_ || (shown_ && now - last_ < kLeastPause)) return;
  last_ = now;
  shown_ = true;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
}

void ProgressBar::Clear() {
  if (!shown_) return;
  shown_ = false;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace loopfleet::client
