#pragma once

#include <string>

namespace loopfleet {

// Of this machine; "" if it has none.
std::string HostName();

}  // namespace loopfleet
