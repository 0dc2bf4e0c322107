#pragma once
// CubinCache: a PtxAssembler with a least-recently-used cache. Assembling takes nearly all of the
// time from tree to cubin, and different trees can produce the same PTX. The key is everything that
// a cubin depends on, compared in full. Bounded in bytes. Used by one thread at a time.

#include <cstdint>
#include <list>
#include <map>
#include <string>

#include "worker/gpu/codegen/ptx_assembler.h"

namespace loopfleet::worker {

class CubinCache final : public PtxAssembler {
 public:
  // Keeps PTX and cubins of at most `max_bytes` in total. A larger entry is not kept.
  CubinCache(PtxAssembler& assembler, std::uint64_t max_bytes)
      : assembler_(assembler), max_bytes_(max_bytes) {}

  Result<Cubin> Assemble(std::string_view ptx, GpuArch arch) override;
  std::string Version() const override { return assembler_.Version(); }

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  struct Key {
    std::string ptx;
    GpuArch arch;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    Cubin cubin;
    std::list<const Key*>::iterator used;
  };
  static std::uint64_t BytesOf(const Key& key, const Cubin& cubin) {
    return key.ptx.size() + cubin.bytes.size() + cubin.log.size();
  }

  PtxAssembler& assembler_;
  const std::uint64_t max_bytes_;
  std::map<Key, Entry> entries_;
  std::list<const Key*> by_use_;  // keys of entries_, most recently used first
  std::uint64_t bytes_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace loopfleet::worker
