#include "bench/peers/gemm_peers.h"

#include <dlfcn.h>
#include <fmt/format.h>
#ifdef LOOPFLEET_HAVE_LIBXSMM
#include <libxsmm.h>
#endif

#include <array>
#include <utility>

namespace loopfleet::bench {
namespace {

// The Fortran interface, which all BLAS libraries have.
using Sgemm = void (*)(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

constexpr float kOne = 1;
constexpr float kZero = 0;

template <typename Function>
Function Symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

void* Load(std::initializer_list<const char*> files, std::string& problem) {
  for (const char* file : files) {
    if (void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
    problem = ::dlerror();
  }
  return nullptr;
}

GemmPeer BlasPeer(void* library, std::string name, int size) {
  const auto sgemm = Symbol<Sgemm>(library, "sgemm_");
  if (sgemm == nullptr) return {.name = std::move(name), .multiply = {}, .missing = "no sgemm_"};
  // A row-major product is the column-major one with swapped operands.
  return {.name = std::move(name),
          .multiply =
              [sgemm, size](const float* a, const float* b, float* c) {
                sgemm("N", "N", &size, &size, &size, &kOne, b, &size, a, &size, &kZero, c, &size);
              },
          .missing = ""};
}

GemmPeer OpenBlas(int size) {
  std::string problem;
  void* library =
      Load({"/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
            "/usr/lib/aarch64-linux-gnu/openblas-serial/libopenblas.so.0", "libopenblas.so.0"},
           problem);
  if (library == nullptr) return {.name = "OpenBLAS", .multiply = {}, .missing = problem};
  if (const auto limit = Symbol<void (*)(int)>(library, "openblas_set_num_threads")) limit(1);
  const auto core = Symbol<char* (*)()>(library, "openblas_get_corename");
  return BlasPeer(library, fmt::format("OpenBLAS ({})", core == nullptr ? "?" : core()), size);
}

GemmPeer Blis(int size) {
  std::string problem;
  void* library = Load({"/usr/lib/x86_64-linux-gnu/blis-serial/libblis.so.4",
                        "/usr/lib/aarch64-linux-gnu/blis-serial/libblis.so.4", "libblis.so.4"},
                       problem);
  if (library == nullptr) return {.name = "BLIS", .multiply = {}, .missing = problem};
  if (const auto limit = Symbol<void (*)(int)>(library, "bli_thread_set_num_threads")) limit(1);
  const auto id = Symbol<int (*)()>(library, "bli_arch_query_id");
  const auto text = Symbol<const char* (*)(int)>(library, "bli_arch_string");
  const char* kernels = id == nullptr || text == nullptr ? "?" : text(id());
  return BlasPeer(library, fmt::format("BLIS ({})", kernels), size);
}

GemmPeer Libxsmm([[maybe_unused]] int size) {
#ifdef LOOPFLEET_HAVE_LIBXSMM
  const int flags = LIBXSMM_GEMM_FLAG_NONE;
  const int prefetch = LIBXSMM_PREFETCH_NONE;
  const libxsmm_smmfunction kernel = libxsmm_smmdispatch(size, size, size, nullptr, nullptr,
                                                         nullptr, &kOne, &kZero, &flags, &prefetch);
  if (kernel == nullptr) {
    return {.name = "LIBXSMM", .multiply = {}, .missing = "it makes no kernel of this size"};
  }
  return {.name = fmt::format("LIBXSMM ({})", libxsmm_get_target_arch()),
          .multiply = [kernel](const float* a, const float* b, float* c) { kernel(b, a, c); },
          .missing = ""};
#else
  return {.name = "LIBXSMM", .multiply = {}, .missing = "libxsmm-dev was not there at build time"};
#endif
}

}  // namespace

std::vector<GemmPeer> GemmPeers(int size) { return {OpenBlas(size), Blis(size), Libxsmm(size)}; }

}  // namespace loopfleet::bench
