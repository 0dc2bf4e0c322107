#pragma once
// CodeArea: memory of this process for machine code that is called here. It is one file in memory,
// mapped twice: code is written through one mapping and executed through the other, so no page can
// be both written and executed at one address. Not for code of strangers: what runs here can do
// what the process can. One thread at a time; blocks may be freed by any.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "common/base/result.h"
#include "kernel/kernel.h"

namespace loopfleet {

class CodeArea : public std::enable_shared_from_this<CodeArea> {
 public:
  // A piece of the area that holds one image; freed by the destructor.
  class Block {
   public:
    Block(std::shared_ptr<CodeArea> area, std::size_t offset, std::size_t size,
          KernelFunction entry)
        : area_(std::move(area)), offset_(offset), size_(size), function_(entry) {}
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    KernelFunction function() const { return function_; }

   private:
    const std::shared_ptr<CodeArea> area_;
    const std::size_t offset_;
    const std::size_t size_;
    const KernelFunction function_;
  };

  // kSystem: the system allows no memory that is executable; kUnavailable: there is none now.
  static Result<std::shared_ptr<CodeArea>> Create(std::size_t bytes = std::size_t{256} << 20);
  ~CodeArea();

  // The biggest free place. Code linked for it is passed to Write before the next call.
  CodePlace FreePlace() const;
  // Copies in an image that was linked for FreePlace(). kInvalid: the image does not fit, or its
  // entry lies outside it.
  Result<std::unique_ptr<Block>> Write(const CodeImage& image);

 private:
  struct Gap {
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  CodeArea(std::size_t bytes, std::byte* writable, std::byte* executable);
  Gap BiggestGap() const;
  void Free(std::size_t offset, std::size_t size);

  const std::size_t bytes_;
  std::byte* const writable_;
  std::byte* const executable_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> gaps_;  // offset -> size; guarded by mutex_
};

}  // namespace loopfleet
