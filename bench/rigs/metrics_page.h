#pragma once
// MetricsPage: reads a daemon's /metrics, for benchmarks that report its internal figures.

#include <map>
#include <string>

#include "common/base/result.h"

namespace loopfleet::bench {

// Values by series, written as on the page: `name{label="x"}`. `address` is 127.0.0.1:PORT.
Result<std::map<std::string, double>> ReadMetrics(const std::string& address);

}  // namespace loopfleet::bench
