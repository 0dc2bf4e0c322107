#pragma once
// ProgressBar: one line on standard error, rewritten in place. Prints nothing if that is not a
// terminal, or one that cannot rewrite a line (TERM=dumb).

#include <chrono>
#include <cstdint>
#include <string>

namespace loopfleet::client {

struct Progress {
  std::uint32_t done = 0;
  std::uint32_t failed = 0;  // of `done`
  std::uint32_t total = 0;
};

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar() { Clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(const Progress& progress);
  // A line of the caller's own instead of the bar.
  void ShowText(const std::string& text);
  void Clear();  // so that other text can be printed

 private:
  bool can_rewrite_;
  bool may_colour_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace loopfleet::client
