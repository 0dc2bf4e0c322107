#pragma once
// MetricsPage: what a daemon says on /metrics, for benchmarks that report on its inside.

#include <map>
#include <string>

#include "common/base/result.h"

namespace loopfleet::bench {

// Each series by its text up to the value: `name{label="x"}`. `address` is 127.0.0.1:PORT.
Result<std::map<std::string, double>> ReadMetrics(const std::string& address);

}  // namespace loopfleet::bench
