#include "client/cli/text/printable.h"

namespace loopfleet::client {

std::string Printable(std::string_view text, std::string_view kept) {
  std::string printable(text);
  for (char& c : printable) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (is_control && !kept.contains(c)) c = '?';
  }
  return printable;
}

}  // namespace loopfleet::client
