#include "worker/cpu/object_cache.h"

#include <utility>

namespace loopfleet::worker {

const std::string* ObjectCache::Find(std::string_view module) {
  const auto found = by_module_.find(module);
  if (found == by_module_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &found->second->object;
}

void ObjectCache::Add(std::string module, std::string object) {
  if (module.size() + object.size() > max_bytes_ || by_module_.contains(module)) return;
  entries_.push_front({std::move(module), std::move(object)});
  by_module_.emplace(entries_.front().module, entries_.begin());
  bytes_ += entries_.front().bytes();
  while (bytes_ > max_bytes_) {
    bytes_ -= entries_.back().bytes();
    by_module_.erase(entries_.back().module);
    entries_.pop_back();
  }
}

}  // namespace loopfleet::worker
