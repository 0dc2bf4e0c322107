#pragma once
// Registry: the metrics of one process. main() makes one and passes it on; none is global. It hides
// the Prometheus client library, so that only monitoring/ includes it.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace prometheus {
class Registry;
}

namespace loopfleet::monitoring {

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Everything registered, in Prometheus' text format 0.0.4. Safe from any thread.
  std::string ToText() const;

  // For gauges that are read only on demand (files of /sys and /proc): each ToText calls `read`
  // first, on its own thread, several at a time. Register all of them before the registry is
  // served; what they refer to must outlive the server.
  void OnScrape(std::function<void()> read) { readers_.push_back(std::move(read)); }

  prometheus::Registry& prometheus() { return *registry_; }  // for the sources of monitoring/

 private:
  std::unique_ptr<prometheus::Registry> registry_;
  std::vector<std::function<void()>> readers_;
};

}  // namespace loopfleet::monitoring
