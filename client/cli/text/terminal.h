#pragma once
// Terminal: the alternate screen on standard output, redrawn as a whole, and single keys from
// standard input. The destructor restores the terminal.

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/text/top_screen.h"

namespace loopfleet::client {

class Terminal {
 public:
  // Whether standard output is a terminal that can be drawn on, and standard input a terminal.
  static bool IsThere();

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  ScreenSize Size() const;
  void Draw(const std::vector<std::string>& lines) const;
  // The next key, if one is pressed within this time.
  std::optional<char> ReadKey(std::chrono::milliseconds wait) const;

 private:
  std::optional<termios> before_;
};

}  // namespace loopfleet::client
