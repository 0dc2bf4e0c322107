#include "bench/peers/nvrtc_peer.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <utility>
#include <variant>
#include <vector>

namespace loopfleet::bench {
namespace {

using worker::Statement;
using worker::TileAxis;
using worker::TileMapping;

std::string AddSource(std::int64_t elements) {
  return fmt::format(R"(
extern "C" __global__ void __launch_bounds__(256)
add(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z) {{
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < {}) z[i] = x[i] + y[i];
}}
)",
                     elements);
}

std::string MatmulSource(const TileMapping& tile, std::int64_t depth_extent) {
  const TileAxis& x = tile.x;
  const TileAxis& y = tile.y;
  std::string text =
      fmt::format(R"(
constexpr int M = {}, N = {}, K = {}, D = {};            // sizes; steps between barriers
constexpr int BY = {}, BX = {}, TY = {}, TX = {};        // elements of a block and of a thread
constexpr int NY = BY / TY, NX = BX / TX, T = NY * NX;   // threads
constexpr int GY = TY < 4 ? TY : 4, GX = TX < 4 ? TX : 4;
extern "C" __global__ void __launch_bounds__(T)
matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {{
  const int tx = threadIdx.x % NX, ty = threadIdx.x / NX;
  constexpr int blocks_x = (N + BX - 1) / BX;
  const int x0 = blockIdx.x % blocks_x * BX, y0 = blockIdx.x / blocks_x * BY;
  float sum[TY][TX] = {{}};
)",
                  y.extent, x.extent, depth_extent, tile.depth, y.block, x.block, y.each, x.each);
  const bool staged = tile.staged.size() == 2;
  if (staged) {
    text += R"(
  __shared__ float as[D][BY + 4], bs[D][BX];
  constexpr int LA = (BY * D + T - 1) / T, LB = (BX * D + T - 1) / T;
  float next_a[LA], next_b[LB];
  const auto fetch = [&](int k0) {
#pragma unroll
    for (int j = 0; j < LA; ++j) {
      const int i = min(int(threadIdx.x) + j * T, BY * D - 1);
      next_a[j] = a[min(y0 + i / D, M - 1) * K + min(k0 + i % D, K - 1)];
    }
#pragma unroll
    for (int j = 0; j < LB; ++j) {
      const int i = min(int(threadIdx.x) + j * T, BX * D - 1);
      next_b[j] = b[min(k0 + i / BX, K - 1) * N + min(x0 + i % BX, N - 1)];
    }
  };
  fetch(0);
#pragma unroll 1
  for (int k0 = 0; k0 < K; k0 += D) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < LA; ++j) {
      const int i = threadIdx.x + j * T;
      if (i < BY * D) as[i % D][i / D] = next_a[j];
    }
#pragma unroll
    for (int j = 0; j < LB; ++j) {
      const int i = threadIdx.x + j * T;
      if (i < BX * D) bs[i / BX][i % BX] = next_b[j];
    }
    __syncthreads();
    if (k0 + D < K) fetch(k0 + D);
    const int steps = K % D == 0 ? D : min(D, K - k0);
)";
    text += fmt::format("#pragma unroll {}\n", tile.unrolled_steps);
    text += R"(    for (int d = 0; d < steps; ++d) {
      float left[TY], right[TX];
#pragma unroll
      for (int i = 0; i < TY; ++i) left[i] = as[d][i / GY * NY * GY + ty * GY + i % GY];
#pragma unroll
      for (int j = 0; j < TX; ++j) right[j] = bs[d][j / GX * NX * GX + tx * GX + j % GX];
#pragma unroll
      for (int i = 0; i < TY; ++i)
#pragma unroll
        for (int j = 0; j < TX; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
    }
  }
)";
  } else {
    text += R"(
#pragma unroll 1
  for (int k = 0; k < K; ++k) {
    float left[TY], right[TX];
#pragma unroll
    for (int i = 0; i < TY; ++i) left[i] = a[min(y0 + i / GY * NY * GY + ty * GY + i % GY, M - 1) * K + k];
#pragma unroll
    for (int j = 0; j < TX; ++j) right[j] = b[k * N + min(x0 + j / GX * NX * GX + tx * GX + j % GX, N - 1)];
#pragma unroll
    for (int i = 0; i < TY; ++i)
#pragma unroll
      for (int j = 0; j < TX; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
  }
)";
  }
  return text + R"(
#pragma unroll
  for (int i = 0; i < TY; ++i) {
    const int row = y0 + i / GY * NY * GY + ty * GY + i % GY;
#pragma unroll
    for (int j = 0; j < TX; ++j) {
      const int column = x0 + j / GX * NX * GX + tx * GX + j % GX;
      if (row < M && column < N) c[row * N + column] = sum[i][j];
    }
  }
}
)";
}

// C[m,n] = sum_k A[m,k] B[k,n], x along n and y along m, row-major.
bool IsMatmul(const TileMapping& tile, std::int64_t depth) {
  const std::vector<Statement>& body = tile.nest.body->statements;
  if (body.size() != 2 || body[0].op != looptree::Op::kMultiply || !tile.others.empty()) {
    return false;
  }
  const auto* a = std::get_if<worker::Access>(&body[0].operands[0]);
  const auto* b = std::get_if<worker::Access>(&body[0].operands[1]);
  if (a == nullptr || b == nullptr || !tile.y.dim.has_value()) return false;
  return worker::StrideOf(*a, tile.y.loop) == depth && worker::StrideOf(*a, tile.x.loop) == 0 &&
         worker::StrideOf(*b, tile.x.loop) == 1 && worker::StrideOf(*b, tile.y.loop) == 0;
}

}  // namespace

Result<std::string> CudaSource(const worker::DevicePlan& device) {
  const auto& [plan, stages, scratch, effective] = device;
  if (stages.size() == 1) {
    if (const auto* tile = std::get_if<TileMapping>(&stages.front().mapping)) {
      if (!tile->reduced.empty()) {
        const looptree::DimId k = plan.loops[tile->reduced.front()].dim;
        if (IsMatmul(*tile, plan.dim_sizes[k])) return MatmulSource(*tile, plan.dim_sizes[k]);
      }
    }
    if (std::holds_alternative<worker::ThreadMapping>(stages.front().mapping) &&
        plan.dim_sizes.size() == 1) {
      return AddSource(plan.dim_sizes.front());
    }
  }
  return Fail(ErrorKind::kInvalid, "there is no CUDA C++ for this tree: " + DescribeStages(device));
}

struct Nvrtc::Functions {
  using Program = struct _nvrtcProgram*;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*cubin_size)(Program, std::size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*version)(int*, int*) = nullptr;
};

namespace {

template <class F>
bool Find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Result<Nvrtc> Nvrtc::Open() {
  std::vector<std::string> places = {
      "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so",
      "/usr/local/lib/loopfleet/nvidia-cuda-nvrtc/nvidia/cu13/lib/libnvrtc.so.13"};
  if (const char* named = std::getenv("LOOPFLEET_NVRTC")) places = {named};
  void* library = nullptr;
  for (const std::string& place : places) {
    library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    return Fail(
        ErrorKind::kNotFound,
        "libnvrtc cannot be opened; it comes with the CUDA toolkit, or: pip install --target "
        "/usr/local/lib/loopfleet/nvidia-cuda-nvrtc nvidia-cuda-nvrtc; or set LOOPFLEET_NVRTC to "
        "its path");
  }
  auto rt = std::make_shared<Functions>();
  const bool complete = Find(library, "nvrtcCreateProgram", rt->create) &&
                        Find(library, "nvrtcDestroyProgram", rt->destroy) &&
                        Find(library, "nvrtcCompileProgram", rt->compile) &&
                        Find(library, "nvrtcGetCUBINSize", rt->cubin_size) &&
                        Find(library, "nvrtcGetCUBIN", rt->cubin) &&
                        Find(library, "nvrtcGetProgramLogSize", rt->log_size) &&
                        Find(library, "nvrtcGetProgramLog", rt->log) &&
                        Find(library, "nvrtcVersion", rt->version);
  if (!complete) return Fail(ErrorKind::kSystem, "libnvrtc lacks a function that it should have");
  int major = 0;
  int minor = 0;
  rt->version(&major, &minor);
  Nvrtc nvrtc;
  nvrtc.functions_ = std::move(rt);
  nvrtc.version_ = fmt::format("NVRTC {}.{}", major, minor);
  return nvrtc;
}

Result<std::string> Nvrtc::Compile(const std::string& source, worker::GpuArch arch) const {
  const Functions& rt = *functions_;
  Functions::Program program = nullptr;
  if (rt.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) {
    return Fail(ErrorKind::kSystem, "nvrtcCreateProgram failed");
  }
  const std::string arch_option = "--gpu-architecture=" + arch.Name();
  const std::array<const char*, 1> options = {arch_option.c_str()};
  const int compiled = rt.compile(program, options.size(), options.data());
  std::size_t size = 0;
  std::string text;
  if (compiled != 0) {
    rt.log_size(program, &size);
    text.resize(size);
    rt.log(program, text.data());
  } else {
    rt.cubin_size(program, &size);
    text.resize(size);
    rt.cubin(program, text.data());
  }
  rt.destroy(&program);
  if (compiled != 0) return Fail(ErrorKind::kInvalid, text + source);
  return text;
}

}  // namespace loopfleet::bench
