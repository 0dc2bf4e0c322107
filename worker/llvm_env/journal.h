#pragma once
// Journal: memory that a process shares with its forks, where the running one of them writes down
// what it finds out and what it is about to do. So nothing is lost with a fork that crashes, and
// its parent knows where it was. One process at a time writes; the others wait for it.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "common/base/result.h"
#include "common/llvm_passes/observation.h"

namespace loopfleet::worker {

class Journal {
 public:
  // What the running process is doing.
  struct Place {
    std::uint32_t node = 0;
    enum class Activity : std::uint8_t { kPass, kObservation } activity = Activity::kPass;
    passes::Observation observation{};
  };

  // kSystem: no memory. Memory is used up to the highest fill.
  static Result<Journal> Make(std::size_t capacity);
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  Place& place() { return header_->place; }

  // False: there is no room left.
  bool Append(std::string_view record);
  // Within this memory, even if a fork that went wild wrote over the size.
  std::string_view records() const {
    return {records_, std::min<std::size_t>(header_->size, capacity_)};
  }
  void Clear() { header_->size = 0; }

 private:
  struct Header {
    Place place;
    std::uint64_t size = 0;
  };
  Journal(void* memory, std::size_t capacity);

  Header* header_;
  char* records_;
  std::size_t capacity_;  // of the records
};

}  // namespace loopfleet::worker
