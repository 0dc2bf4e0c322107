#pragma once
// CodeArena: the memory that machine code lies in. It has one address in all children of the
// fork server, so a compiler child can link for it. Children can read and execute it, and nobody
// else can ever map it writable; the daemon writes it through a view of its own, which no child
// has. So no process has memory that it can both write and execute.
//
// It is cut into places, each for the code of one kernel: the next kernel's code is in its place
// before its turn to run comes.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "common/base/result.h"
#include "worker/backend/kernel.h"
#include "worker/verification/shared_memory.h"

namespace loopfleet::worker {

class CodeArena {
 public:
  // The right to one place; given back when the object goes. The arena has to outlive it.
  class Place {
   public:
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;
    ~Place();

    std::uint64_t address() const;  // in the children
    std::size_t size() const;
    // Puts an image there that was linked for address(). Returns the address of its entry; kInvalid
    // if it is not inside the place.
    Result<std::uint64_t> Write(const CodeImage& image);

   private:
    friend class CodeArena;
    Place(CodeArena& arena, std::uint32_t number) : arena_(&arena), number_(number) {}
    CodeArena* arena_;  // null: moved from
    std::uint32_t number_;
  };

  struct Options {
    std::uint32_t places = 80;
    // Far beyond what 8,192 unrolled bodies become; memory is taken only where code is.
    std::size_t place_bytes = std::size_t{8} << 20;
  };
  // Before the fork server is forked. kFull, kSystem.
  static Result<std::unique_ptr<CodeArena>> Create(const Options& options);
  ~CodeArena();

  // In the fork server: from here on this process and its children can execute the arena and not
  // write it.
  Status LeaveWritingToParent();

  // In the daemon, from any thread. Waits until a place is free.
  Place Take();

 private:
  CodeArena(const Options& options, SharedMemory writable, void* reserved);
  std::size_t size() const { return options_.places * options_.place_bytes; }

  const Options options_;
  SharedMemory writable_;  // empty in children
  void* const reserved_;   // where children have it

  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::uint32_t> free_;  // guarded by mutex_
};

}  // namespace loopfleet::worker
