#pragma once
// The screen of `loopfleet top`. Pure: no sockets, no terminal.

#include <cstddef>
#include <string>
#include <vector>

#include "client/cli/text/reply_history.h"

namespace loopfleet::client {

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};
// At most `rows` lines of at most `columns` characters; plain ASCII except names.
std::vector<std::string> TopScreen(const ReplyHistory& history, const ScreenSize& size);

}  // namespace loopfleet::client
