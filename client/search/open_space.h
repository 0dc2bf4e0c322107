#pragma once
// The space of any benchmark.

#include "client/search/search_space.h"

namespace loopfleet::client {

// kInvalid: it is none that can be searched, with the nearest valid one.
Result<SharedSpace> OpenSearchSpace(const looptree::Source& source);

}  // namespace loopfleet::client
