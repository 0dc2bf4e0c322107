#include "tests/gpu/cublas_peer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "worker/gpu/codegen/shared_library.h"

namespace loopfleet::worker {

// As cublas_v2.h declares them.
struct CublasPeer::Functions {
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*version)(void*, int*) = nullptr;
  int (*set_stream)(void*, void*) = nullptr;
  int (*set_math_mode)(void*, int) = nullptr;
  int (*sgemm)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int,
               const float*, float*, int) = nullptr;
};

CublasPeer::CublasPeer() : functions_(std::make_unique<Functions>()) {}

CublasPeer::~CublasPeer() {
  if (handle_ != nullptr) functions_->destroy(handle_);
}

Result<std::unique_ptr<CublasPeer>> CublasPeer::Open(const CudaDriver& driver) {
  std::vector<std::string> places = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                     "/usr/local/cuda/lib64/libcublas.so"};
  if (const char* named = std::getenv("LOOPFLEET_CUBLAS"); named != nullptr && *named != '\0') {
    places = {named};
  }
  // Turns TF32 off in every math mode. cuBLAS reads this when it starts.
  ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  const auto library = SharedLibrary::Open(places);
  if (!library) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("there is no cuBLAS here ({}); LOOPFLEET_CUBLAS may name it",
                            library.error().message));
  }
  std::unique_ptr<CublasPeer> peer(new CublasPeer());
  Functions& cublas = *peer->functions_;
  bool is_complete = true;
  const auto find = [&](const char* symbol, auto& function) {
    is_complete = library->Find(symbol, function) && is_complete;
  };
  find("cublasCreate_v2", cublas.create);
  find("cublasDestroy_v2", cublas.destroy);
  find("cublasGetVersion_v2", cublas.version);
  find("cublasSetStream_v2", cublas.set_stream);
  find("cublasSetMathMode", cublas.set_math_mode);
  find("cublasSgemm_v2", cublas.sgemm);
  if (!is_complete) return Fail(ErrorKind::kSystem, "cuBLAS lacks a function");
  // CUBLAS_DEFAULT_MATH: full float32, with any of its kernels; tensor cores are opt-in. (The
  // pedantic mode excludes kernels that are as exact, so it is no fair peer.)
  constexpr int kDefault = 0;
  int version = 0;
  if (cublas.create(&peer->handle_) != 0 || cublas.version(peer->handle_, &version) != 0 ||
      cublas.set_stream(peer->handle_, driver.stream()) != 0 ||
      cublas.set_math_mode(peer->handle_, kDefault) != 0) {
    return Fail(ErrorKind::kSystem, "cuBLAS does not start");
  }
  peer->version_ = fmt::format("cuBLAS {}", version);
  return peer;
}

CudaCode CublasPeer::Start(int size, CudaAddress a, CudaAddress b, CudaAddress c) {
  // cuBLAS is column-major: a row-major matrix is its transpose there, and (b' a')' = a b.
  constexpr int kAsItIs = 0;
  const float one = 1;
  const float zero = 0;
  const int result = functions_->sgemm(
      handle_, kAsItIs, kAsItIs, size, size, size, &one, reinterpret_cast<const float*>(b), size,
      reinterpret_cast<const float*>(a), size, &zero, reinterpret_cast<float*>(c), size);
  return result == 0 ? CudaCode::kSuccess : CudaCode::kInvalidValue;
}

}  // namespace loopfleet::worker
