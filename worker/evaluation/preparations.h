#pragma once
// Preparations: whether anything was prepared (compiled, verified) in some span of time. That
// happens on the cores that the parallel loops of a kernel run on, too. Safe from any thread.

#include <cstdint>
#include <mutex>

namespace loopfleet::worker {

class Preparations {
 public:
  // One of them, as long as it lives.
  class UnderWay {
   public:
    explicit UnderWay(Preparations& all) : all_(all) { all_.Count(all_.begun_); }
    ~UnderWay() { all_.Count(all_.ended_); }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    Preparations& all_;
  };

  // The beginning of a span that ends with WereAnySince.
  struct Mark {
    std::uint64_t ended = 0;
  };
  Mark Now() const {
    std::lock_guard lock(mutex_);
    return {ended_};
  }
  // One was under way then, or began since.
  bool WereAnySince(const Mark& mark) const {
    std::lock_guard lock(mutex_);
    return begun_ > mark.ended;
  }

 private:
  void Count(std::uint64_t& count) {
    std::lock_guard lock(mutex_);
    ++count;
  }

  mutable std::mutex mutex_;
  std::uint64_t begun_ = 0;  // guarded by mutex_, like the other
  std::uint64_t ended_ = 0;
};

}  // namespace loopfleet::worker
