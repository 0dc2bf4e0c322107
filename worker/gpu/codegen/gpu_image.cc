#include "worker/gpu/codegen/gpu_image.h"

#include "kernel/byte_codec.h"

namespace loopfleet::worker {

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, GpuLaunch>& launch) {
  archive(launch.symbol, launch.blocks, launch.threads);
  archive.Require([&] { return launch.blocks > 0 && launch.threads > 0; });
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, GpuImage>& image) {
  archive(image.ptx, image.cubin);
  archive.List(image.launches, kMostLaunches);
}

std::string GpuObjectOf(const GpuKernel& kernel) {
  return Encode(GpuImage{.ptx = kernel.ptx, .cubin = {}, .launches = kernel.launches});
}

std::string Encode(const GpuImage& image) { return EncodeBytes(image); }
std::optional<GpuImage> DecodeGpuImage(std::string_view bytes) {
  return DecodeBytes<GpuImage>(bytes);
}

}  // namespace loopfleet::worker
