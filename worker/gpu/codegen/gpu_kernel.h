#pragma once
// GpuKernel: a loop tree compiled for a GPU: PTX and its launches.
//
// Calling convention: each launch is a kernel with one-dimensional blocks. Its parameters are the
// addresses of `buffers`, in that order (inputs, outputs, scratch), each aligned to 64 bytes. The
// launches run in order, each after the previous one has ended. They write every element of the
// outputs and never write inputs. Scratch may hold anything before and after.

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace loopfleet::worker {

struct GpuLaunch {
  std::string symbol;
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;  // per block
  friend bool operator==(const GpuLaunch&, const GpuLaunch&) = default;
};

struct GpuKernel {
  std::string ptx;
  std::vector<GpuLaunch> launches;
  std::vector<looptree::TreeRef> launch_roots;  // see ProfileMap::launch_roots
  std::vector<BufferSpec> buffers;
  std::uint64_t scratch_bytes = 0;
  std::vector<std::string> notes;  // see Evaluation::notes
};

}  // namespace loopfleet::worker
