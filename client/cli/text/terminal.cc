#include "client/cli/text/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace loopfleet::client {

bool Terminal::IsThere() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1 && kind != nullptr &&
         *kind != '\0' && std::string_view(kind) != "dumb";
}

Terminal::Terminal() {
  termios settings{};
  if (::tcgetattr(STDIN_FILENO, &settings) == 0) {
    before_ = settings;
    settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C still interrupts
    ::tcsetattr(STDIN_FILENO, TCSANOW, &settings);
  }
  fmt::print("\033[?1049h\033[?25l");  // alternate screen, cursor hidden
  std::fflush(stdout);
}

Terminal::~Terminal() {
  fmt::print("\033[?25h\033[?1049l");
  std::fflush(stdout);
  if (before_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

ScreenSize Terminal::Size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {.columns = size.ws_col, .rows = size.ws_row};
}

void Terminal::Draw(const std::vector<std::string>& lines) const {
  std::string frame = "\033[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    frame += fmt::format("{}{}\033[K", i == 0 ? "" : "\r\n", lines[i]);
  }
  frame += "\033[J";  // clears the rest of the last frame
  std::fwrite(frame.data(), 1, frame.size(), stdout);
  std::fflush(stdout);
}

std::optional<char> Terminal::ReadKey(std::chrono::milliseconds wait) const {
  pollfd keys{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&keys, 1, static_cast<int>(wait.count())) <= 0) return std::nullopt;
  char key = 0;
  if (::read(STDIN_FILENO, &key, 1) != 1) return std::nullopt;
  return key;
}

}  // namespace loopfleet::client
