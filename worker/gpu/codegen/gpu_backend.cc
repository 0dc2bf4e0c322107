#include "worker/gpu/codegen/gpu_backend.h"

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "worker/gpu/codegen/cubin_cache.h"
#include "worker/gpu/codegen/gpu_compiler.h"
#include "worker/gpu/codegen/gpu_image.h"

namespace loopfleet::worker {
namespace {

// PTX and cubins cached in each compiler child: enough for a few thousand kernels.
constexpr std::uint64_t kCacheBytes = std::uint64_t{128} << 20;

class ImageCompiler final : public Compiler {
 public:
  explicit ImageCompiler(std::unique_ptr<GpuCompiler> compiler) : compiler_(std::move(compiler)) {}

  std::expected<Kernel, Failure> Compile(const looptree::LoopTree& tree,
                                         const CompileOptions&) override {
    LF_TRY(GpuKernel kernel, compiler_->Compile(tree));
    return Kernel{.object = GpuObjectOf(kernel),
                  .buffers = std::move(kernel.buffers),
                  .scratch_bytes = kernel.scratch_bytes,
                  .threads = 1,
                  .notes = std::move(kernel.notes),
                  .profile = {.launch_roots = std::move(kernel.launch_roots)}};
  }

 private:
  std::unique_ptr<GpuCompiler> compiler_;
};

class ImageAssembler final : public CodeLinker {
 public:
  ImageAssembler(GpuArch arch, std::unique_ptr<PtxAssembler> assembler)
      : arch_(arch), assembler_(std::move(assembler)) {
    if (assembler_) cache_ = std::make_unique<CubinCache>(*assembler_, kCacheBytes);
  }

  Result<CodeImage> LinkAt(std::string_view object, const CodePlace& place) override {
    std::optional<GpuImage> image = DecodeGpuImage(object);
    if (!image) return Fail(ErrorKind::kCorrupt, "no image of a GPU kernel");
    if (cache_) {
      LF_TRY(Cubin cubin, cache_->Assemble(image->ptx, arch_));
      image->cubin = std::move(cubin.bytes);
    }
    CodeImage code{.bytes = Encode(*image), .entry = 0};
    if (code.bytes.size() > place.max_bytes)
      return Fail(ErrorKind::kFull, "the kernel is too long");
    return code;
  }

 private:
  const GpuArch arch_;
  const std::unique_ptr<PtxAssembler> assembler_;  // null: the driver assembles
  std::unique_ptr<CubinCache> cache_;
};

}  // namespace

Backend GpuBackend(GpuArch arch, GpuAssembler assembler, const std::string& assembler_place) {
  return {.compiler = GpuCompilerFacts(),
          .make_compiler = [arch]() -> std::unique_ptr<Compiler> {
            auto compiler = GpuCompiler::Create({.arch = arch, .limits = {}});
            LF_CHECK(compiler.has_value(), "{}", compiler.error().message);
            return std::make_unique<ImageCompiler>(*std::move(compiler));
          },
          .make_linker = [arch, assembler, assembler_place]() -> std::unique_ptr<CodeLinker> {
            if (assembler == GpuAssembler::kDriver) {
              return std::make_unique<ImageAssembler>(arch, nullptr);
            }
            auto opened = OpenNvJitLink(assembler_place);
            LF_CHECK(opened.has_value(), "{}", opened.error().message);
            return std::make_unique<ImageAssembler>(arch, *std::move(opened));
          }};
}

}  // namespace loopfleet::worker
