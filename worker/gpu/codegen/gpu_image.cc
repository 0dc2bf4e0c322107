#include "worker/gpu/codegen/gpu_image.h"

#include "kernel/byte_codec.h"

namespace loopfleet::worker {
namespace {

constexpr std::uint64_t kMostLaunches = 4096;

}  // namespace

std::string Encode(const GpuImage& image) {
  ByteWriter writer;
  writer.PutText(image.ptx);
  writer.PutText(image.cubin);
  writer.Put(std::uint64_t{image.launches.size()});
  for (const GpuLaunch& launch : image.launches) {
    writer.PutText(launch.symbol);
    writer.Put(launch.blocks);
    writer.Put(launch.threads);
  }
  return writer.Take();
}

std::optional<GpuImage> DecodeGpuImage(std::string_view bytes) {
  ByteReader reader(bytes);
  GpuImage image;
  image.ptx = reader.GetText();
  image.cubin = reader.GetText();
  image.launches.resize(reader.GetCount(kMostLaunches));
  for (GpuLaunch& launch : image.launches) {
    launch.symbol = reader.GetText();
    launch.blocks = reader.Get<std::uint32_t>();
    launch.threads = reader.Get<std::uint32_t>();
    if (launch.blocks == 0 || launch.threads == 0) return std::nullopt;
  }
  if (!reader.AtEnd()) return std::nullopt;
  return image;
}

}  // namespace loopfleet::worker
