#pragma once
// GpuImage: the code of a GPU kernel as it goes from a compiler child to the daemon and on to the
// child that has the device: PTX, the cubin made of it unless the driver is to assemble, and how to
// launch it. As bytes it is what Kernel::object (without the cubin) and CodeImage::bytes are for a
// GPU.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/gpu/codegen/gpu_kernel.h"

namespace loopfleet::worker {

struct GpuImage {
  std::string ptx;
  std::string cubin;  // "": the driver assembles
  std::vector<GpuLaunch> launches;
  // What the driver is to load.
  const std::string& code() const { return cubin.empty() ? ptx : cubin; }
  friend bool operator==(const GpuImage&, const GpuImage&) = default;
};

std::string Encode(const GpuImage& image);
std::optional<GpuImage> DecodeGpuImage(std::string_view bytes);  // nullopt for junk

}  // namespace loopfleet::worker
