#pragma once
// Registry: the metrics of one process. main() makes one and passes it on; there is no global one.
// It hides the Prometheus client library, so that nobody outside monitoring/ includes it.

#include <memory>
#include <string>

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

  prometheus::Registry& prometheus() { return *registry_; }  // for the sources of monitoring/

 private:
  std::unique_ptr<prometheus::Registry> registry_;
};

}  // namespace loopfleet::monitoring
