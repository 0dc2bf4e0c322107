#pragma once
// Terminal: a screen of its own on standard output, drawn anew each time, and keys read one by one.
// What was there before comes back with the destructor.

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/text/fleet_text.h"

namespace loopfleet::client {

class Terminal {
 public:
  // Standard output is a terminal that can be drawn upon, and standard input one that has keys.
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
