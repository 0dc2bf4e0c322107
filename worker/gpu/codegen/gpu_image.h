#pragma once
// GpuImage: the code of a GPU kernel on its way from a compiler child through the daemon to the
// device child: PTX, its cubin unless the driver assembles, and the launches. Encoded, it is
// Kernel::object (without the cubin) and CodeImage::bytes of a GPU kernel.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/gpu/codegen/gpu_kernel.h"

namespace loopfleet::worker {

struct GpuImage {
  std::string ptx;
  std::string cubin;  // empty: the driver assembles
  std::vector<GpuLaunch> launches;
  // The code for the driver to load.
  const std::string& code() const { return cubin.empty() ? ptx : cubin; }
  friend bool operator==(const GpuImage&, const GpuImage&) = default;
};

// Kernel::object of the kernel, which a row's code_hash is of.
std::string GpuObjectOf(const GpuKernel& kernel);

std::string Encode(const GpuImage& image);
std::optional<GpuImage> DecodeGpuImage(std::string_view bytes);  // nullopt: malformed

}  // namespace loopfleet::worker
