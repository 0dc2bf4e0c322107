#pragma once
// RecentMap: a cache of the entries used last. It holds two generations: when the newer one is full
// it becomes the older one, whose entries are dropped; an entry found in the older one moves to the
// newer. So an entry that is used at least once in `most` new ones stays, and adding costs the same
// however many distinct keys there are.

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <utility>

namespace loopfleet::storage {

template <class Key, class Value, class Hash = std::hash<Key>>
class RecentMap {
 public:
  // Entries in each generation.
  explicit RecentMap(std::size_t most) : most_(most) {}

  using Entry = std::pair<const Key, Value>;
  // Null: not there. Valid until the entry is dropped: not beyond the next call.
  Entry* Find(const Key& key) {
    if (const auto found = newer_.find(key); found != newer_.end()) return &*found;
    auto node = older_.extract(key);
    if (node.empty()) return nullptr;
    MakeRoom();
    return &*newer_.insert(std::move(node)).position;
  }
  // The key must not be there. The entry is valid as one that is found.
  Entry* Add(Key key, Value value) {
    MakeRoom();
    return &*newer_.emplace(std::move(key), std::move(value)).first;
  }
  void Clear() {
    newer_.clear();
    older_.clear();
  }
  std::size_t size() const { return newer_.size() + older_.size(); }

 private:
  void MakeRoom() {
    if (newer_.size() >= most_) older_ = std::exchange(newer_, {});
  }

  const std::size_t most_;
  std::unordered_map<Key, Value, Hash> newer_;
  std::unordered_map<Key, Value, Hash> older_;
};

}  // namespace loopfleet::storage
