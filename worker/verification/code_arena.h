#pragma once
// CodeArena: memory for machine code, at the same address in all children of the fork server, so
// that a compiler child can link for it. Children can read and execute it. Only the daemon can
// write it, through a view of its own, and no other writable mapping can be made. So no process can
// both write and execute it.
//
// It is divided into places, each for the code of one kernel: the next kernel's code is in place
// before it runs.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "common/base/result.h"
#include "kernel/kernel.h"
#include "worker/verification/shared_memory.h"

namespace loopfleet::worker {

class CodeArena {
 public:
  // The right to one place, given back by the destructor. The arena must outlive it.
  class Place {
   public:
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;
    ~Place();

    std::uint64_t address() const;  // in the children
    std::size_t size() const;
    // Copies in an image that was linked for address(). Returns the address of its entry. kInvalid:
    // the image does not fit, or its entry lies outside it.
    Result<std::uint64_t> Write(const CodeImage& image);

   private:
    friend class CodeArena;
    Place(CodeArena& arena, std::uint32_t number) : arena_(&arena), number_(number) {}
    CodeArena* arena_;  // null: moved from
    std::uint32_t number_;
  };

  struct Options {
    std::uint32_t places = 80;
    // Far more than 8,192 unrolled bodies need. Only pages that hold code take memory.
    std::size_t place_bytes = std::size_t{8} << 20;
  };
  // Call before the fork server is forked. Errors: kFull, kSystem.
  static Result<std::unique_ptr<CodeArena>> Create(const Options& options);
  ~CodeArena();

  // Call in the fork server. From then on this process and its children can execute the arena but
  // not write it.
  Status MakeExecutable();

  // In the daemon, from any thread. Waits until a place is free.
  Place Take();

 private:
  CodeArena(const Options& options, SharedMemory writable, void* reserved);
  std::size_t size() const { return options_.places * options_.place_bytes; }

  const Options options_;
  SharedMemory writable_;  // empty in children
  void* const reserved_;   // where children map it

  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::uint32_t> free_;  // guarded by mutex_
};

}  // namespace loopfleet::worker
