#include "bench/peers/c_peer.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/base/subprocess.h"

namespace loopfleet::bench {
namespace {

using looptree::DimId;
using looptree::LoopSpec;
using looptree::Node;
using looptree::NodeId;
using looptree::Op;
using looptree::Program;

constexpr Nanos kTimingBudget = std::chrono::milliseconds(10);
constexpr Nanos kCompileLimit = std::chrono::seconds(60);

// "(d0 * 64 + d2)" for a tensor over dims 0 and 2: row-major.
std::string IndexOf(const Program& program, NodeId node) {
  std::string text = "0";
  for (const DimId dim : program.nodes[node].dims) {
    text = fmt::format("({} * {} + i{})", text, program.dims[dim].size, dim);
  }
  return text;
}

std::string LoopsInC(const Program& program, std::span<const LoopSpec> loops) {
  std::string text;
  std::map<DimId, std::string> begin, end;  // range left of each dim, as C expressions
  for (DimId dim = 0; dim < program.dims.size(); ++dim) {
    begin[dim] = "0";
    end[dim] = std::to_string(program.dims[dim].size);
  }
  const std::vector<std::int64_t> strides = Strides(loops);
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const DimId dim = loops[i].dim;
    const std::string index = strides[i] == 1 ? fmt::format("i{}", dim) : fmt::format("l{}", i);
    text += fmt::format("for (long {0} = {1}; {0} < {2}; {0} += {3}) {{\n", index, begin[dim],
                        end[dim], strides[i]);
    if (strides[i] > 1) {
      text += fmt::format("long e{0} = {1} + {2} < {3} ? {1} + {2} : {3};\n", i, index, strides[i],
                          end[dim]);
      begin[dim] = index;
      end[dim] = fmt::format("e{}", i);
    }
  }
  return text;
}

}  // namespace

std::optional<Product> FindProduct(const Program& program) {
  std::optional<Product> found;
  for (NodeId sum = 0; sum < program.nodes.size(); ++sum) {
    const Node& add = program.nodes[sum];
    if (add.op != Op::kAdd || !program.IsReduction(sum)) continue;
    const NodeId multiply = add.inputs[0];
    const Node& product = program.nodes[multiply];
    if (product.op != Op::kMultiply || found) return std::nullopt;
    found = Product{product.inputs[0], product.inputs[1], multiply, sum};
  }
  return found;
}

std::vector<std::int64_t> Strides(std::span<const LoopSpec> loops) {
  std::vector<std::int64_t> strides(loops.size());
  std::map<DimId, std::int64_t> inner;
  for (std::size_t i = loops.size(); i-- > 0;) {
    auto& covered = inner.try_emplace(loops[i].dim, 1).first->second;
    strides[i] = covered;
    covered = loops[i].size * covered + loops[i].tail;
  }
  return strides;
}

Result<std::string> MatmulInC(const looptree::LoopTree& tree) {
  const Program& program = tree.program();
  const auto product = FindProduct(program);
  if (!product) return Fail(ErrorKind::kInvalid, "the program is no matrix product");
  const std::vector<LoopSpec>& loops = tree.schedule()[product->multiply].loops;
  std::string text = fmt::format(
      "void kernel(const float* restrict A, const float* restrict B, float* restrict C) {{\n"
      "for (long i = 0; i < {}; ++i) C[i] = 0;\n",
      program.ElementCount(product->sum));
  text += LoopsInC(program, loops);
  text += fmt::format("C[{}] += A[{}] * B[{}];\n", IndexOf(program, product->sum),
                      IndexOf(program, product->left), IndexOf(program, product->right));
  return text + std::string(loops.size() + 1, '}') + "\n";
}

void CKernel::CloseLibrary::operator()(void* library) const { ::dlclose(library); }

Result<CKernel> CKernel::Make(const looptree::LoopTree& tree, const std::filesystem::path& dir) {
  LF_TRY(const std::string text, MatmulInC(tree));
  const std::filesystem::path source = dir / "kernel.c";
  const std::filesystem::path binary = dir / "kernel.so";
  std::ofstream(source) << text;
  LF_TRY(auto compiler, Subprocess::Start({.argv = {"cc", "-O3", "-march=native", "-shared",
                                                    "-fPIC", "-o", binary, source}}));
  if (const auto status = compiler.WaitFor(kCompileLimit); !status || status->code != 0) {
    return Fail(ErrorKind::kSystem, "cc does not compile the kernel");
  }
  CKernel kernel;
  kernel.library_.reset(::dlopen(binary.c_str(), RTLD_NOW | RTLD_LOCAL));
  // A loaded library needs no file. The next one reuses the name as a new file.
  std::filesystem::remove(binary);
  if (kernel.library_ == nullptr) return Fail(ErrorKind::kSystem, ::dlerror());
  kernel.function_ = reinterpret_cast<void (*)(const float*, const float*, float*)>(
      ::dlsym(kernel.library_.get(), "kernel"));
  if (kernel.function_ == nullptr) return Fail(ErrorKind::kSystem, "the library has no kernel");

  const Program& program = tree.program();
  const Product product = *FindProduct(program);
  const auto elements = [&](NodeId node) {
    return static_cast<std::uint64_t>(program.ElementCount(node));
  };
  kernel.left_ = MakeBuffer(elements(product.left), 1);
  kernel.right_ = MakeBuffer(elements(product.right), 1);
  kernel.out_ = MakeBuffer(elements(product.sum), 0);
  kernel.Run();
  // A minimal check: the loops cover each element once.
  float wanted = 1;
  for (const DimId dim : program.ReducedDims(product.sum)) {
    wanted *= static_cast<float>(program.dims[dim].size);
  }
  for (std::uint64_t i = 0; i < elements(product.sum); ++i) {
    if (kernel.out_[i] != wanted) {
      return Fail(ErrorKind::kCorrupt, "the C kernel computes something else");
    }
  }
  return kernel;
}

Result<double> EvaluateInC(const looptree::LoopTree& tree, const std::filesystem::path& dir) {
  LF_TRY(CKernel kernel, CKernel::Make(tree, dir));
  const auto start = std::chrono::steady_clock::now();
  std::int64_t runs = 0;
  Nanos elapsed{0};
  while (elapsed < kTimingBudget) {
    kernel.Run();
    ++runs;
    elapsed = std::chrono::steady_clock::now() - start;
  }
  return static_cast<double>(elapsed.count()) / static_cast<double>(runs);
}

}  // namespace loopfleet::bench
