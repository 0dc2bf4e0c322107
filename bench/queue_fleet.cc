#include "bench/queue_case.h"
namespace loopfleet::bench {
Status RunFleetCase() { return {}; }
}  // namespace loopfleet::bench
