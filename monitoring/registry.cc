#include "monitoring/registry.h"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace loopfleet::monitoring {

Registry::Registry() : registry_(std::make_unique<prometheus::Registry>()) {}
Registry::~Registry() = default;

std::string Registry::ToText() const {
  for (const auto& read : readers_) read();
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

}  // namespace loopfleet::monitoring
