#include "worker/cpu/linker.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Support/MemoryBuffer.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace loopfleet::worker {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;
using llvm::BitmaskEnumDetail::operator&;

// Code and constants each start on a new cache line.
constexpr std::uint64_t kSegmentAlignment = 64;
constexpr std::uint64_t kPageBytes = 4096;

llvm::Error Problem(const std::string& text) {
  return llvm::make_error<llvm::StringError>(text, llvm::inconvertibleErrorCode());
}

// The result of one link.
struct Linked {
  CodeImage image;
  std::uint64_t address = 0;
  std::size_t max_bytes = 0;
  const OutsideFunctions& outside;
  bool too_long = false;
  std::string problem;  // empty: none
};

// Lays all sections out in one image, the code first.
class ImageMemory final : public jitlink::JITLinkMemoryManager {
 public:
  explicit ImageMemory(Linked& linked) : linked_(linked) {}

  void allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph,
                OnAllocatedFunction on_allocated) override {
    jitlink::BasicLayout layout(graph);
    std::uint64_t end = 0;
    for (const bool code : {true, false}) {
      for (auto& [group, segment] : layout.segments()) {
        if (((group.getMemProt() & orc::MemProt::Exec) != orc::MemProt::None) != code) continue;
        if (segment.Alignment.value() > kPageBytes) {
          return on_allocated(Problem("a section is aligned beyond a page"));
        }
        const std::uint64_t start =
            llvm::alignTo(end, std::max(kSegmentAlignment, segment.Alignment.value()));
        end = start + segment.ContentSize + segment.ZeroFillSize;
        segment.Addr = orc::ExecutorAddr(linked_.address + start);
      }
    }
    if (end > linked_.max_bytes) {
      linked_.too_long = true;
      return on_allocated(
          Problem(fmt::format("{} bytes of machine code, {} are allowed", end, linked_.max_bytes)));
    }
    linked_.image.bytes.assign(end, '\0');
    for (auto& [group, segment] : layout.segments()) {
      segment.WorkingMem = linked_.image.bytes.data() + (segment.Addr.getValue() - linked_.address);
    }
    if (llvm::Error error = layout.apply()) return on_allocated(std::move(error));
    on_allocated(std::make_unique<InImage>());
  }

  void deallocate(std::vector<FinalizedAlloc> allocations,
                  OnDeallocatedFunction on_deallocated) override {
    for (FinalizedAlloc& allocation : allocations) allocation.release();
    on_deallocated(llvm::Error::success());
  }

 private:
  class InImage final : public InFlightAlloc {
   public:
    void abandon(OnAbandonedFunction on_abandoned) override {
      on_abandoned(llvm::Error::success());
    }
    void finalize(OnFinalizedFunction on_finalized) override {
      on_finalized(FinalizedAlloc(orc::ExecutorAddr()));
    }
  };

  Linked& linked_;
};

class ImageContext final : public jitlink::JITLinkContext {
 public:
  explicit ImageContext(Linked& linked)
      : JITLinkContext(nullptr), linked_(linked), memory_(linked) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }

  void notifyFailed(llvm::Error error) override {
    linked_.problem = llvm::toString(std::move(error));
  }

  void lookup(const LookupMap& names,
              std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> found) override {
    jitlink::AsyncLookupResult result;
    for (const auto& [name, flags] : names) {
      const std::optional<std::uint64_t> address = linked_.outside.Find(std::string_view(name));
      if (!address) return found->run(Problem(fmt::format("unknown symbol '{}'", name.str())));
      result[name] = {orc::ExecutorAddr(*address),
                      llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    found->run(std::move(result));
  }

  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    for (const jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->hasName() || symbol->getName() != kKernelSymbol) continue;
      linked_.image.entry = symbol->getAddress().getValue() - linked_.address;
      return llvm::Error::success();
    }
    return Problem(fmt::format("it does not define {}", kKernelSymbol));
  }

  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override {
    allocation.release();
  }

  // Drops everything that the kernel does not reach.
  jitlink::LinkGraphPassFunction getMarkLivePass(const llvm::Triple&) const override {
    return [](jitlink::LinkGraph& graph) {
      for (jitlink::Symbol* symbol : graph.defined_symbols()) {
        if (symbol->hasName() && symbol->getName() == kKernelSymbol) symbol->setLive(true);
      }
      return llvm::Error::success();
    };
  }

 private:
  Linked& linked_;
  ImageMemory memory_;
};

std::unexpected<Error> Unlinkable(const std::string& why) {
  return Fail(ErrorKind::kCorrupt,
              fmt::format("the kernel's object file cannot be linked: {}", why));
}

}  // namespace

Result<CodeImage> Linker::LinkAt(std::string_view object, const CodePlace& place) {
  const llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), "kernel");
  auto graph = jitlink::createLinkGraphFromObject(buffer);
  if (!graph) return Unlinkable(llvm::toString(graph.takeError()));
  Linked linked{
      .address = place.address,
      .max_bytes = place.max_bytes,
      .outside = place.outside != nullptr ? *place.outside : OutsideFunctions::OfThisProcess()};
  // Nothing here is asynchronous: the link is complete when this returns.
  jitlink::link(std::move(*graph), std::make_unique<ImageContext>(linked));
  if (linked.too_long) return Fail(ErrorKind::kFull, linked.problem);
  if (!linked.problem.empty()) return Unlinkable(linked.problem);
  return std::move(linked.image);
}

LinkedKernel::~LinkedKernel() { ::munmap(memory_, size_); }

Result<std::unique_ptr<LinkedKernel>> Linker::Link(std::string_view object) {
  // Linking adds only a few table entries for each external function.
  constexpr std::size_t kAddedBytes = std::size_t{64} << 10;
  const std::size_t size = llvm::alignTo(object.size() + kAddedBytes, kPageBytes);
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Fail(ErrorKind::kSystem, fmt::format("no memory for code: {}", std::strerror(errno)));
  }
  std::unique_ptr<LinkedKernel> kernel(new LinkedKernel(memory, size));
  LF_TRY(const CodeImage image,
         LinkAt(object, {.address = reinterpret_cast<std::uint64_t>(memory), .max_bytes = size}));
  std::memcpy(memory, image.bytes.data(), image.bytes.size());
  if (::mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) {
    return Fail(ErrorKind::kSystem, fmt::format("mprotect: {}", std::strerror(errno)));
  }
  __builtin___clear_cache(static_cast<char*>(memory), static_cast<char*>(memory) + size);
  kernel->function_ = reinterpret_cast<KernelFunction>(static_cast<char*>(memory) + image.entry);
  return kernel;
}

}  // namespace loopfleet::worker
