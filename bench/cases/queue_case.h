#pragma once
// The cases of `bench/run.sh queue`. Each prints its own result lines; queue.cc lists them.

#include "common/base/result.h"

namespace loopfleet::bench {

Status RunBatchedCase();
Status RunUnbatchedCase();
Status RunLatencyCase();
Status RunRepeatsCase();
Status RunFleetCase();
Status RunRecoveryCase();

}  // namespace loopfleet::bench
