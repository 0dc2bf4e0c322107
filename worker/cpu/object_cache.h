#pragma once
// ObjectCache: a least-recently-used cache of object files, keyed by the module's exact bytes.
// Different trees often lower to the same module (a split into whole strips, an annotation without
// effect), and machine passes take nine tenths of a compilation: of 256 random walks of matmul 64,
// 119 hit this cache. Bounded in bytes. Used by one thread.

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace loopfleet::worker {

class ObjectCache {
 public:
  // 0: keeps nothing.
  explicit ObjectCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

  bool is_kept() const { return max_bytes_ > 0; }
  // Null if absent. The pointer is valid until the next Add.
  const std::string* Find(std::string_view module);
  void Add(std::string module, std::string object);

 private:
  struct Entry {
    std::string module;
    std::string object;
    std::size_t bytes() const { return module.size() + object.size(); }
  };
  const std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_module_;
};

}  // namespace loopfleet::worker
