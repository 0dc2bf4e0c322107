#pragma once
// NewRequestId: names a submission, so that sending it twice is harmless. The time comes first, so
// those of one client ascend: the coordinator keeps them by client and id, and a random order would
// make it change another page of that list for each submission.

#include "common/base/uuid.h"

namespace loopfleet::client {

Uuid NewRequestId();  // 8 bytes of nanoseconds since 1970, most significant first; 8 random ones

}  // namespace loopfleet::client
