#include "worker/llvm_env/huge_code.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

namespace loopfleet::worker {
namespace {

// Of the kernel's transparent huge pages; 0: it gives none.
std::size_t HugePageBytes() {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  std::string enabled;
  std::size_t bytes = 0;
  if (!std::getline(std::ifstream(folder + "enabled"), enabled) || enabled.contains("[never]")) {
    return 0;
  }
  std::ifstream(folder + "hpage_pmd_size") >> bytes;
  return bytes;
}

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// Linkers put a library's code between its functions _init and _fini.
Range CodeOfLibraryWith(const void* function) {
  Dl_info info{};
  link_map* library = nullptr;
  if (::dladdr1(function, &info, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP) == 0)
    return {};
  Range code;
  for (const ElfW(Dyn)* entry = library->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_INIT) code.begin = library->l_addr + entry->d_un.d_ptr;
    if (entry->d_tag == DT_FINI) code.end = library->l_addr + entry->d_un.d_ptr;
  }
  return code.begin == 0 ? Range{} : code;
}

void* At(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

bool MoveCodeToHugePages(const void* function) {
  const std::size_t page = HugePageBytes();
  if (page == 0) return false;
  const auto round_up = [page](std::uintptr_t address) {
    return (address + page - 1) / page * page;
  };
  const Range code = CodeOfLibraryWith(function);
  const std::uintptr_t begin = round_up(code.begin);
  const std::uintptr_t end = code.end / page * page;
  if (end <= begin) return false;
  const std::size_t size = end - begin;
  void* const room = ::mmap(nullptr, size + page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  void* const copy = At(round_up(reinterpret_cast<std::uintptr_t>(room)));
  bool is_moved = ::madvise(copy, size, MADV_HUGEPAGE) == 0;
  if (is_moved) {
    std::memcpy(copy, At(begin), size);
    is_moved = ::mprotect(copy, size, PROT_READ | PROT_EXEC) == 0 &&
               ::mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, At(begin)) != MAP_FAILED;
  }
  ::munmap(room, size + page);  // what is left of it
  return is_moved;
}

}  // namespace loopfleet::worker
