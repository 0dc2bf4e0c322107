// Evaluates schedules of a matrix product with Halide, as its measuring autoschedulers do: JIT
// compile, run for 10 ms. A separate program, because Debian's Halide brings another LLVM.
//
//   bench_halide_evaluator SCHEDULES SECONDS
//
// SCHEDULES has one JSON line per schedule (bench/peers/halide_peer.cc writes them). The time of
// evaluating all of them goes to the file SECONDS. Only the first element is verified.

#include <Halide.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

struct Loop {
  std::size_t dim = 0;
  int stride = 1;  // elements of the dim that one iteration covers
};

struct Product {
  std::vector<int> sizes;  // by dim
  std::vector<std::size_t> left, right, out;
  std::vector<Loop> loops;  // outermost first
};

Product Parse(const Json& line) {
  Product product{.sizes = line.at("sizes"),
                  .left = line.at("left"),
                  .right = line.at("right"),
                  .out = line.at("out"),
                  .loops = {}};
  for (const Json& loop : line.at("loops")) product.loops.push_back({loop.at(0), loop.at(1)});
  return product;
}

// Halide's first coordinate is the contiguous one, so dims are reversed.
std::vector<int> Extents(const Product& product, const std::vector<std::size_t>& dims) {
  std::vector<int> extents;
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) extents.push_back(product.sizes[*dim]);
  return extents;
}

Halide::Buffer<float> Filled(const std::vector<int>& extents) {
  Halide::Buffer<float> buffer(extents);
  buffer.fill(1.0F);
  return buffer;
}

class Evaluation {
 public:
  explicit Evaluation(const Product& product)
      : product_(product),
        is_reduced_(product.sizes.size(), true),
        left_(Filled(Extents(product, product.left))),
        right_(Filled(Extents(product, product.right))),
        out_(Extents(product, product.out)) {
    for (const std::size_t dim : product.out) is_reduced_[dim] = false;
    Define();
    Schedule();
  }

  // Nanoseconds of one run; negative: the first element is wrong.
  double Run() {
    constexpr auto kTimingBudget = std::chrono::milliseconds(10);
    function_.compile_jit(Halide::get_jit_target_from_environment());
    function_.realize(out_);
    double wanted = 1;
    for (std::size_t dim = 0; dim < is_reduced_.size(); ++dim) {
      if (is_reduced_[dim]) wanted *= product_.sizes[dim];
    }
    if (static_cast<double>(*out_.begin()) != wanted) return -1;
    const auto start = Clock::now();
    std::int64_t runs = 0;
    Clock::duration elapsed{};
    while (elapsed < kTimingBudget) {
      function_.realize(out_);
      ++runs;
      elapsed = Clock::now() - start;
    }
    return std::chrono::duration<double, std::nano>(elapsed).count() / static_cast<double>(runs);
  }

 private:
  std::vector<Halide::Expr> At(const std::vector<std::size_t>& dims) const {
    std::vector<Halide::Expr> at;
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) at.push_back(indices_[*dim]);
    return at;
  }

  void Define() {
    Halide::Region ranges;
    for (std::size_t dim = 0; dim < is_reduced_.size(); ++dim) {
      if (is_reduced_[dim]) ranges.emplace_back(0, product_.sizes[dim]);
    }
    const Halide::RDom reduced(ranges);
    int next = 0;
    for (std::size_t dim = 0; dim < is_reduced_.size(); ++dim) {
      if (is_reduced_[dim]) {
        const Halide::RVar var = reduced[next++];
        whole_.emplace_back(var);
        indices_.emplace_back(var);
      } else {
        const Halide::Var var("d" + std::to_string(dim));
        whole_.emplace_back(var);
        indices_.emplace_back(var);
      }
    }
    std::vector<Halide::Var> coordinates;
    for (auto dim = product_.out.rbegin(); dim != product_.out.rend(); ++dim) {
      coordinates.emplace_back("d" + std::to_string(*dim));
    }
    function_(coordinates) = 0.0F;
    function_(coordinates) += left_(At(product_.left)) * right_(At(product_.right));
  }

  void Schedule() {
    Halide::Stage sum = function_.update();
    std::vector<Halide::VarOrRVar> left = whole_;  // the unsplit rest of each dim
    std::vector<int> loops_left(whole_.size(), 0);
    for (const Loop& loop : product_.loops) ++loops_left[loop.dim];
    std::vector<Halide::VarOrRVar> innermost_first;
    int number = 0;
    for (const auto& [dim, stride] : product_.loops) {
      if (--loops_left[dim] == 0) {  // the last loop covers the rest
        innermost_first.insert(innermost_first.begin(), left[dim]);
        continue;
      }
      const std::string outer = "o" + std::to_string(number);
      const std::string inner = "i" + std::to_string(number++);
      if (is_reduced_[dim]) {
        const Halide::RVar o(outer);
        const Halide::RVar i(inner);
        sum.split(left[dim].rvar, o, i, stride, Halide::TailStrategy::GuardWithIf);
        innermost_first.insert(innermost_first.begin(), o);
        left[dim] = i;
      } else {
        const Halide::Var o(outer);
        const Halide::Var i(inner);
        sum.split(left[dim].var, o, i, stride, Halide::TailStrategy::GuardWithIf);
        innermost_first.insert(innermost_first.begin(), o);
        left[dim] = i;
      }
    }
    sum.reorder(innermost_first);
  }

  const Product product_;
  std::vector<bool> is_reduced_;  // by dim
  Halide::Buffer<float> left_;
  Halide::Buffer<float> right_;
  Halide::Buffer<float> out_;
  std::vector<Halide::VarOrRVar> whole_;
  std::vector<Halide::Expr> indices_;
  Halide::Func function_{"product"};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<Product> products;
  std::ifstream schedules(argv[1]);
  for (std::string line; std::getline(schedules, line);) {
    products.push_back(Parse(Json::parse(line)));
  }
  // The first evaluation of a process sets up the code generator.
  if (!products.empty()) Evaluation(products.front()).Run();
  const auto start = Clock::now();
  for (const Product& product : products) {
    if (Evaluation(product).Run() < 0) {
      std::cerr << "bench_halide_evaluator: Halide computes something else\n";
      return 1;
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::ofstream(argv[2]) << seconds << "\n";
  return 0;
}
