#pragma once
// Preparations: tells whether any job was prepared (compiled, verified), or one of another kind
// ran, during a span of time. That uses the same cores as the parallel loops of a kernel. Safe from
// any thread.

#include <cstdint>
#include <mutex>

namespace loopfleet::worker {

class Preparations {
 public:
  // One preparation, for its lifetime.
  class UnderWay {
   public:
    explicit UnderWay(Preparations& all) : all_(all) { all_.Count(all_.begun_); }
    ~UnderWay() { all_.Count(all_.ended_); }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    Preparations& all_;
  };

  // The start of a span that ends with WereAnySince.
  struct Mark {
    std::uint64_t ended = 0;
  };
  Mark Now() const {
    std::lock_guard lock(mutex_);
    return {ended_};
  }
  // True if one was in progress at `mark`, or began since.
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
  std::uint64_t begun_ = 0;  // guarded by mutex_, as is ended_
  std::uint64_t ended_ = 0;
};

}  // namespace loopfleet::worker
