#include "tensor/gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace loopfleet::tensor {
namespace {

using looptree::Op;
using Kind = TensorError::Kind;
using Shape = Tensor::Shape;
using Values = std::vector<float>;

const Symbol m("m"), n("n"), k("k"), i("i"), j("j"), o("o"), w("w");

Tensor Leaf(const Shape& shape, const Values& values) {
  Tensor tensor(shape);
  tensor.set(values);
  return tensor;
}

Tensor Vector(const Values& values) {
  return Leaf({static_cast<std::int64_t>(values.size())}, values);
}

Values ValuesOf(const Tensor& tensor) {
  const auto values = tensor.data<float>();
  return {values.begin(), values.end()};
}

Values SlopesOf(const Tensor& loss, const Tensor& of, const GradientOptions& options = {}) {
  const Tensor gradient = Grad(loss, {of}, options)[0];
  EXPECT_EQ(gradient.symbolic_shape(), of.symbolic_shape());
  EXPECT_EQ(gradient.shape(), of.shape());
  return ValuesOf(gradient);
}

void ExpectNear(const Values& found, const Values& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t at = 0; at < found.size(); ++at) {
    EXPECT_NEAR(found[at], expected[at], 1e-5F * std::max(1.0F, std::abs(expected[at]))) << at;
  }
}

std::string MessageOf(const std::function<void()>& function) {
  try {
    function();
  } catch (const TensorError& error) {
    EXPECT_STREQ(ErrorName(error.kind()), "GradientError") << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(GradientTest, OfAMatrixProduct) {
  const Tensor a = Leaf({2, 3}, {1, 2, 3, 4, 5, 6}), b = Leaf({3, 2}, {1, -1, 2, 0, 5, 3});
  const Tensor loss = (a.to({m, k}) * b.to({k, n})).sum();
  EXPECT_EQ(SlopesOf(loss, a), (Values{0, 2, 8, 0, 2, 8}));
  EXPECT_EQ(SlopesOf(loss, b), (Values{5, 5, 7, 7, 9, 9}));
}

TEST(GradientTest, OfEachFunction) {
  const Values x = {0.25F, 0.5F, 1.5F, 2.25F};
  const std::vector<std::pair<Op, std::function<double(double)>>> slopes = {
      {Op::kNegate, [](double) { return -1.0; }},
      {Op::kReciprocal, [](double v) { return -1 / (v * v); }},
      {Op::kExp, [](double v) { return std::exp(v); }},
      {Op::kLog, [](double v) { return 1 / v; }},
      {Op::kSqrt, [](double v) { return 0.5 / std::sqrt(v); }},
      {Op::kAbs, [](double) { return 1.0; }},
      {Op::kTanh, [](double v) { return 1 - std::tanh(v) * std::tanh(v); }},
      {Op::kErf, [](double v) { return 2 * std::numbers::inv_sqrtpi * std::exp(-v * v); }},
      {Op::kSin, [](double v) { return std::cos(v); }},
      {Op::kCos, [](double v) { return -std::sin(v); }},
      {Op::kFloor, [](double) { return 0.0; }},
      {Op::kCeil, [](double) { return 0.0; }},
      {Op::kRound, [](double) { return 0.0; }},
      {Op::kSign, [](double) { return 0.0; }},
  };
  for (const auto& [op, slope] : slopes) {
    SCOPED_TRACE(looptree::OpName(op));
    const Tensor leaf = Vector(x);
    Values expected;
    for (const float value : x) expected.push_back(static_cast<float>(3 * slope(value)));
    ExpectNear(SlopesOf((leaf.Unary(op) * Tensor::Constant(3)).sum(), leaf), expected);
  }
  const Tensor signs = Vector({-2, 0, 3});
  EXPECT_EQ(SlopesOf(signs.abs().sum(), signs), (Values{-1, 0, 1}));
}

TEST(GradientTest, OfOperationsOnTwo) {
  const Tensor a = Vector({1, 2, 3}), b = Vector({4, 2, -1});
  const Tensor x = a.to({m}), y = b.to({m});
  EXPECT_EQ(SlopesOf((x + y).sum(), a), (Values{1, 1, 1}));
  EXPECT_EQ(SlopesOf((x - y).sum(), b), (Values{-1, -1, -1}));
  EXPECT_EQ(SlopesOf((x * y).sum(), a), (Values{4, 2, -1}));
  ExpectNear(SlopesOf((x / y).sum(), a), {0.25F, 0.5F, -1});
  ExpectNear(SlopesOf((x / y).sum(), b), {-1.0F / 16, -0.5F, -3});
  EXPECT_EQ(SlopesOf(x.max(y).sum(), a), (Values{0, 0.5F, 1}));
  EXPECT_EQ(SlopesOf(x.max(y).sum(), b), (Values{1, 0.5F, 0}));
  EXPECT_EQ(SlopesOf(x.min(y).sum(), a), (Values{1, 0.5F, 0}));
  ExpectNear(SlopesOf(x.Binary(Op::kPower, y).sum(), a), {4, 4, -1.0F / 9});
  ExpectNear(SlopesOf(x.Binary(Op::kPower, y).sum(), b),
             {0, 4 * std::log(2.0F), std::log(3.0F) / 3});
  EXPECT_EQ(SlopesOf(x.Binary(Op::kPower, Tensor::Constant(2)).sum(), a), (Values{2, 4, 6}));
  ExpectNear(SlopesOf(Tensor::Constant(2).Binary(Op::kPower, x).sum(), a),
             {2 * std::log(2.0F), 4 * std::log(2.0F), 8 * std::log(2.0F)});
  EXPECT_EQ(SlopesOf(Tensor::Where(x.Binary(Op::kGreater, y), x * x, y).sum(), a),
            (Values{0, 0, 6}));
  EXPECT_EQ(SlopesOf(Tensor::Where(x.Binary(Op::kGreater, y), x, y).sum(), b), (Values{1, 1, 0}));
  EXPECT_EQ(SlopesOf((x * x.Binary(Op::kGreater, y)).sum(), a), (Values{0, 0, 1}));
  EXPECT_EQ(SlopesOf((x * x.Binary(Op::kEqual, y)).sum(), a), (Values{0, 1, 0}));
}

TEST(GradientTest, APowerOfZeroHasAGradient) {
  const Tensor a = Vector({0, 4}), b = Vector({2, 0.5F});
  const Tensor loss = a.to({m}).Binary(Op::kPower, b.to({m})).sum();
  ExpectNear(SlopesOf(loss, a), {0, 0.25F});
  ExpectNear(SlopesOf(loss, b), {0, 2 * std::log(4.0F)});
}

TEST(GradientTest, IsSummedOverDimsThatAnInputLacks) {
  const Tensor a = Vector({1, 2}), b = Leaf({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor x = a.to({m}), y = b.to({m, n});
  EXPECT_EQ(SlopesOf((x * y).sum(), a), (Values{6, 15}));
  EXPECT_EQ(SlopesOf((x + y).sum(), a), (Values{3, 3}));
  EXPECT_EQ(SlopesOf((y - x).sum({n}).sum(), a), (Values{-3, -3}));
  const Tensor number = Leaf({1}, {2}).to({k})[Index(Expr(0))];
  EXPECT_EQ(SlopesOf((number + y).sum(), number), (Values{6}));
  // An outer product, where each lacks all dims of the other.
  EXPECT_EQ(SlopesOf((x + b.to({i, j})).sum(), a), (Values{6, 6}));
}

TEST(GradientTest, OfReductions) {
  const Tensor a = Leaf({2, 3}, {1, 5, 5, 2, 3, 4});
  const Tensor x = a.to({m, n}), weight = Vector({10, 1}).to({m});
  EXPECT_EQ(SlopesOf((x.sum({n}) * weight).sum(), a), (Values{10, 10, 10, 1, 1, 1}));
  EXPECT_EQ(SlopesOf((x.max_reduce({n}) * weight).sum(), a), (Values{0, 5, 5, 0, 0, 1}));
  EXPECT_EQ(SlopesOf((x.min_reduce({n}) * weight).sum(), a), (Values{10, 0, 0, 1, 0, 0}));
  EXPECT_EQ(SlopesOf(x.max_reduce(), a), (Values{0, 0.5F, 0.5F, 0, 0, 0}));
  ExpectNear(SlopesOf(x.mean(), a), Values(6, 1.0F / 6));
  ExpectNear(SlopesOf((x.mean({m}) * Vector({3, 2, 1}).to({n})).sum(), a),
             {1.5F, 1, 0.5F, 1.5F, 1, 0.5F});
  ExpectNear(SlopesOf((x.prod({n}) * weight).sum(), a, {.seed = {}, .allow_division = true}),
             {250, 50, 50, 12, 8, 6});
  EXPECT_NE(MessageOf([&] { Grad(x.prod({n}).sum(), {a}); }).find("allow_division"),
            std::string::npos);
}

TEST(GradientTest, OfRenamesTransposesAndReshapes) {
  const Tensor a = Leaf({2, 3}, {1, 2, 3, 4, 5, 6}), weight = Leaf({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor x = a.to({m, n});
  const Values transposed = {1, 3, 5, 2, 4, 6};
  EXPECT_EQ(SlopesOf((x.transpose({n, m}) * weight.to({n, m})).sum(), a), transposed);
  EXPECT_EQ(SlopesOf((x.to({n, m}) * weight.to({m, n})).sum(), a), transposed);
  const Tensor flat = Vector({1, 2, 3, 4, 5, 6}).to({k});
  EXPECT_EQ(SlopesOf(((x * x).flatten({m, n}, k) * flat).sum(), a), (Values{2, 8, 18, 32, 50, 72}));
  EXPECT_EQ(SlopesOf((x.transpose({n, m}).flatten({n, m}, k) * flat).sum(), a), transposed);
  EXPECT_EQ(SlopesOf((flat.unflatten(k, {{i, 0}, {j, 2}}) * weight.to({i, j})).sum(), flat),
            (Values{1, 2, 3, 4, 5, 6}));
}

TEST(GradientTest, OfConcatenations) {
  const Tensor a = Vector({1, 2}), b = Vector({3, 4, 5});
  const Tensor whole = a.to({m}) | b.to({n});
  const Tensor loss = (whole * whole).sum();
  EXPECT_EQ(SlopesOf(loss, a), (Values{2, 4}));
  EXPECT_EQ(SlopesOf(loss, b), (Values{6, 8, 10}));
  EXPECT_EQ(SlopesOf((a.to({m}) | a.to({n})).sum(), a), (Values{2, 2}));
}

TEST(GradientTest, OfWindowsStridesAndPads) {
  const Tensor a = Vector({1, 2, 3, 4, 5, 6, 7});
  const Tensor taps = Vector({1, 10, 100}).to({w});
  const auto windows = [&](std::int64_t stride) { return a.to({k})[Index(Expr(stride) * o + w)]; };
  EXPECT_EQ(SlopesOf((windows(1) * taps).sum(), a), (Values{1, 11, 111, 111, 111, 110, 100}));
  EXPECT_EQ(SlopesOf((windows(2) * taps).sum(), a), (Values{1, 10, 101, 10, 101, 10, 100}));
  EXPECT_EQ(SlopesOf((windows(4) * taps).sum(), a), (Values{1, 10, 100, 0, 1, 10, 100}));
  const Tensor padded = a.to({k}).pad(k, 2, 1, 9);
  EXPECT_EQ(SlopesOf((padded * padded).sum(), a), (Values{2, 4, 6, 8, 10, 12, 14}));
  // Every second element of a longer tensor.
  const Tensor spread = a.to({k}).to({o}, {{Expr(o), Expr(2) * k}, {Size(o), Expr(2) * Size(k)}});
  EXPECT_EQ(SlopesOf((spread * spread).sum(), a), (Values{2, 4, 6, 8, 10, 12, 14}));
  // Backwards.
  const Tensor back = a.to({k}).to({o}, {{Expr(k), Size(k) - Expr(1) - o}, {Size(o), Size(k)}});
  EXPECT_EQ(SlopesOf((back * Vector({1, 2, 3, 4, 5, 6, 7}).to({o})).sum(), a),
            (Values{7, 6, 5, 4, 3, 2, 1}));
}

TEST(GradientTest, OfSingleElementsDiagonalsAndRepeats) {
  const Tensor a = Leaf({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor x = a.to({m, n});
  EXPECT_EQ(SlopesOf(x[Index(1, 2)], a), (Values{0, 0, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(SlopesOf(x[Index(m, -1)].sum(), a), (Values{0, 0, 1, 0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(SlopesOf((x[Index(i, i)] * Vector({1, 2, 3}).to({i})).sum(), a),
            (Values{1, 0, 0, 0, 2, 0, 0, 0, 3}));
  // Where two equations share both dims.
  EXPECT_EQ(SlopesOf((x[Index(Expr(i) + j, j)] * Leaf({2, 2}, {1, 2, 3, 4}).to({i, j})).sum(), a),
            (Values{1, 0, 0, 3, 2, 0, 0, 4, 0}));
  const Tensor repeated = x.to({k, m, n}, {{Size(k), Expr(4)}});
  EXPECT_EQ(SlopesOf(repeated.sum(), a), Values(9, 4));
}

TEST(GradientTest, ASeedWeighsALossWithDims) {
  const Tensor a = Leaf({2, 2}, {1, 2, 3, 4});
  const Tensor x = a.to({m, n}), loss = x * x;
  const Tensor seed = Leaf({2, 2}, {1, 0, 0, 10}).to({n, m});
  EXPECT_EQ(SlopesOf(loss, a, {.seed = seed}), (Values{2, 0, 0, 80}));
  EXPECT_EQ(SlopesOf(loss, a, {.seed = Vector({1, 2}).to({n})}), (Values{2, 8, 6, 16}));
  EXPECT_EQ(SlopesOf(loss, a, {.seed = Tensor::Constant(1)}), (Values{2, 4, 6, 8}));
  EXPECT_EQ(SlopesOf(x, x, {.seed = seed}), (Values{1, 0, 0, 10}));
}

TEST(GradientTest, OfSeveralTensorsAndOfIntermediateOnes) {
  const Tensor a = Vector({1, 2}), b = Vector({3, 4});
  const Tensor between = a.to({m}) * b.to({m});
  const std::vector<Tensor> all = Grad((between * between).sum(), {a, between, b});
  EXPECT_EQ(ValuesOf(all[0]), (Values{18, 64}));
  EXPECT_EQ(ValuesOf(all[1]), (Values{6, 16}));
  EXPECT_EQ(ValuesOf(all[2]), (Values{6, 32}));
}

TEST(GradientTest, OfAGradient) {
  const Tensor a = Vector({1, 2, 3});
  const Tensor x = a.to({m});
  const Tensor cube = (x * x * x).sum();
  const Tensor slope = Grad(cube, {a})[0];
  EXPECT_EQ(ValuesOf(slope), (Values{3, 12, 27}));
  EXPECT_EQ(SlopesOf(slope.sum(), a), (Values{6, 12, 18}));
  const Tensor mean = (x[Index(Expr(o) + w)].to({o, w}, {{Size(w), Expr(2)}}).exp()).mean();
  const Tensor first = Grad(mean, {a})[0];
  ExpectNear(SlopesOf(first.sum(), a), ValuesOf(first));
}

TEST(GradientTest, EachNodeIsVisitedOnce) {
  Tensor a = Vector({1});
  Tensor sum = a;
  for (int doubling = 0; doubling < 40; ++doubling) sum = sum + sum;
  const Tensor gradient = Grad(sum.sum(), {a})[0];
  EXPECT_LT(InOrder(*gradient.node()).size(), 300U);
  EXPECT_EQ(ValuesOf(gradient), (Values{std::ldexp(1.0F, 40)}));
}

TEST(GradientTest, SizesMayComeLater) {
  Tensor a(std::vector<Symbol>{m}), b(std::vector<Symbol>{m, n});
  const Tensor loss = (a + b).mean() + a.pad(m, 1, 1)[Index(Expr(2) * o)].sum();
  const Tensor gradient = Grad(loss, {a})[0];
  EXPECT_THROW(gradient.shape(), TensorError);
  b.set({3, 2}, Buffer::Zeros(6));
  EXPECT_EQ(gradient.shape(), (Shape{3}));
  a.fill(1);
  ExpectNear(ValuesOf(gradient), {1.0F / 3, 1 + 1.0F / 3, 1.0F / 3});
  // Again, with others.
  b.set({4, 2}, Buffer::Zeros(8));
  a.set({4}, Buffer::Zeros(4));
  ExpectNear(ValuesOf(gradient), {0.25F, 1.25F, 0.25F, 1.25F});
}

// A window's size may follow from the weights alone, which their own gradient does not read.
TEST(GradientTest, SizesAreThoseOfTheLoss) {
  const Tensor a = Vector({1, 2, 3, 4, 5, 6, 7}), taps = Vector({1, 10});
  const Tensor made = (a.to({k})[Index(Expr(3) * o + w)] * taps.to({w})).sum({w});
  EXPECT_EQ(SlopesOf(made.sum(), taps), (Values{5, 7}));
}

TEST(GradientTest, IsATensorOfItsOwn) {
  const Tensor a = Vector({1, 2}), b = Vector({3, 4});
  Tensor gradient = Grad((a.to({m}) * b.to({m})).sum(), {a})[0];
  EXPECT_EQ(ValuesOf(gradient), (Values{3, 4}));
  EXPECT_THROW(gradient.fill(1), TensorError);
}

TEST(GradientTest, ReadsNoElementsOfWhatItHasTheSizesOf) {
  Tensor a(std::vector<Symbol>{m, n});
  a.set_size({2, 2});
  const Tensor b = Vector({1, 2}).to({n});
  EXPECT_EQ(ValuesOf(Grad((a * b).sum(), {a})[0]), (Values{1, 2, 1, 2}));
  EXPECT_EQ(ValuesOf(Grad(a.sum(), {a})[0]), Values(4, 1));
  EXPECT_EQ(ValuesOf(Grad(a.flatten({m, n}, k).mean(), {a})[0]), Values(4, 0.25F));
}

// In several kernels that each computed it, an element could differ from its own maximum.
TEST(GradientTest, AMaximumIsFoundInWhatItWasMadeOf) {
  const Tensor a = Vector({0.1F, 0.7F, 0.3F});
  Tensor x = a.to({m});
  for (int step = 0; step < 300; ++step) x = (x * Tensor::Constant(1.001)).Unary(Op::kSin);
  const Tensor gradient = Grad(x.max_reduce(), {a})[0];
  EXPECT_GT(gradient.segments().size(), 2U);
  const Values slopes = ValuesOf(gradient);
  EXPECT_EQ(slopes[0], 0);
  EXPECT_GT(slopes[1], 0);
  EXPECT_EQ(slopes[2], 0);
}

TEST(GradientTest, ErrorsNameWhatIsWrong) {
  const Tensor a = Vector({1, 2}), b = Vector({3});
  const Tensor x = a.to({m});
  EXPECT_NE(MessageOf([&] { Grad(x * x, {a}); }).find("has dims [m]"), std::string::npos);
  EXPECT_NE(MessageOf([&] { Grad(x * x, {a}, {.seed = b.to({n})}); }).find("seed has dims [n]"),
            std::string::npos);
  EXPECT_NE(MessageOf([&] { Grad(x.sum(), {b}); }).find("does not depend on"), std::string::npos);
  EXPECT_NE(MessageOf([&] { Grad(x.sum(), {Tensor::Constant(3)}); }).find("the number 3"),
            std::string::npos);
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const Tensor y = Leaf({2, 2}, {1, 2, 3, 4}).to({m, n});
  const Tensor far = y[Index(Expr(kHuge) * i + Expr(kHuge + 1) * j, Expr(kHuge) * i + j)];
  EXPECT_NE(MessageOf([&] { Grad(far.sum(), {y}); }).find("cannot be solved"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet::tensor
