#pragma once
// NewRequestId: identifies a submission, so that sending it twice is harmless. The time comes
// first, so the ids of one client ascend: the coordinator's database orders them by client and id,
// and a random order would touch another page of that index for each submission.

#include "common/base/uuid.h"

namespace loopfleet::client {

Uuid NewRequestId();  // 8 bytes of nanoseconds since 1970, most significant first; 8 random ones

}  // namespace loopfleet::client
