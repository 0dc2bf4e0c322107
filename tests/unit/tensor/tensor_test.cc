#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/looptree/text/text.h"
#include "common/looptree/tree/transform.h"

namespace loopfleet::tensor {
namespace {

using looptree::Op;
using Kind = TensorError::Kind;
using Shape = Tensor::Shape;

Tensor Counting(const Shape& shape, float start = 0) {
  Tensor tensor(shape);
  std::vector<float> values(static_cast<std::size_t>(tensor.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<float>(i);
  tensor.set(values);
  return tensor;
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  const auto values = tensor.data<float>();
  return {values.begin(), values.end()};
}

template <class Function>
std::string MessageOf(Kind kind, Function function) {
  try {
    function();
  } catch (const TensorError& error) {
    EXPECT_EQ(ErrorName(error.kind()), std::string(ErrorName(kind))) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

const Symbol m("m"), n("n"), k("k");

Tensor Product(const Tensor& a, const Tensor& b) { return (a.to({m, k}) * b.to({k, n})).sum({k}); }

std::vector<float> ProductOf(const Tensor& a, const Tensor& b) {
  const auto rows = a.shape()[0], depth = a.shape()[1], columns = b.shape()[1];
  std::vector<float> product(static_cast<std::size_t>(rows * columns));
  const auto x = a.data<float>(), y = b.data<float>();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t l = 0; l < depth; ++l) {
        product[static_cast<std::size_t>(i * columns + j)] +=
            x[static_cast<std::size_t>(i * depth + l)] *
            y[static_cast<std::size_t>(l * columns + j)];
      }
    }
  }
  return product;
}

TEST(TensorTest, MatrixProduct) {
  const Tensor a = Counting({4, 5}), b = Counting({5, 3});
  const Tensor c = Product(a, b);
  EXPECT_EQ(c.shape(), (Shape{4, 3}));
  EXPECT_EQ(ValuesOf(c), ProductOf(a, b));
  // Its program is that of the data set of products: one nest, the dims under their names.
  EXPECT_EQ(c.loop_tree().program().dims[0].name, "m");
  EXPECT_EQ(c.loop_tree().program().dims[1].name, "k");
  EXPECT_EQ(c.loop_tree().program().nodes.size(), 5U);
}

TEST(TensorTest, ATensorTimesItselfUnderOtherNames) {
  const Tensor a = Counting({3, 3});
  EXPECT_EQ(ValuesOf(Product(a, a)), ProductOf(a, a));
  EXPECT_EQ(ValuesOf(a * a)[4], 16);
}

TEST(TensorTest, ChainsOfProducts) {
  const Tensor a = Counting({2, 3}), b = Counting({3, 4}), c = Counting({4, 5});
  const Tensor ab = Product(a, b);
  EXPECT_EQ(ValuesOf(Product(ab, c)), ProductOf(ab, c));
}

TEST(TensorTest, NamesThatNothingSharesMakeAnOuterSum) {
  const Tensor sum = Counting({3}) + Counting({2}, 10);
  EXPECT_EQ(sum.shape(), (Shape{3, 2}));
  EXPECT_EQ(ValuesOf(sum), (std::vector<float>{10, 11, 11, 12, 12, 13}));
}

TEST(TensorTest, NumbersAndReductions) {
  const Tensor a = Counting({2, 3}).to({m, n});
  EXPECT_EQ(ValuesOf((Tensor::Constant(2) * a).sum({n})), (std::vector<float>{6, 24}));
  EXPECT_EQ((a + Tensor::Constant(1)).prod().item(), 720);
  EXPECT_EQ(ValuesOf(a.max_reduce({m})), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(ValuesOf(a.min_reduce({n})), (std::vector<float>{0, 3}));
  EXPECT_EQ(a.mean().item(), 2.5F);
  EXPECT_EQ(ValuesOf(a.mean({m})), (std::vector<float>{1.5F, 2.5F, 3.5F}));
  EXPECT_EQ(Tensor::Constant(7).item(), 7);
  Tensor scalar((std::vector<Symbol>()));
  EXPECT_EQ(scalar.fill(3.5F).item(), 3.5F);
  EXPECT_EQ((scalar * scalar).item(), 12.25F);
}

TEST(TensorTest, ComparisonsAndChoice) {
  const Tensor a = Counting({4}).to({m});
  const Tensor big = a.Binary(Op::kGreater, Tensor::Constant(1));
  EXPECT_EQ(ValuesOf(big), (std::vector<float>{0, 0, 1, 1}));
  EXPECT_EQ(ValuesOf(Tensor::Where(big, a, -a)), (std::vector<float>{0, -1, 2, 3}));
}

TEST(TensorTest, ViewsPadsAndConcatenation) {
  const Tensor x = Counting({6}, 1).to({m});
  const Symbol o("o"), w("w");
  EXPECT_EQ(ValuesOf((x[Index(Expr(o) + Expr(w))] * Counting({2}, 1).to({w})).sum({w})),
            (std::vector<float>{5, 8, 11, 14, 17}));
  EXPECT_EQ(ValuesOf(x.pad(m, 1, 2)), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 0, 0}));
  EXPECT_EQ(ValuesOf(x.pad(m, 1, 0, -INFINITY))[0], -INFINITY);
  EXPECT_EQ(ValuesOf(x[Index(Expr(3))]), std::vector<float>{4});
  EXPECT_EQ(ValuesOf(x[Index(Expr(-1))]), std::vector<float>{6});
  EXPECT_EQ(ValuesOf(x[Index(Expr(2) * Expr(o))]), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(ValuesOf(x | Counting({2}).to({n})), (std::vector<float>{1, 2, 3, 4, 5, 6, 0, 1}));
}

TEST(TensorTest, TransposesAndReshapes) {
  const Tensor a = Counting({2, 3}).to({m, n});
  EXPECT_EQ(ValuesOf(a.transpose({n, m})), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  const Tensor flat = a.transpose({n, m}).flatten({});
  EXPECT_EQ(ValuesOf(flat), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  const Symbol p("p"), q("q");
  const Tensor two =
      (flat + Tensor::Constant(1)).unflatten(flat.symbolic_shape()[0], {{p, 2}, {q, 0}});
  EXPECT_EQ(two.shape(), (Shape{2, 3}));
  EXPECT_EQ(ValuesOf(two.sum({q})), (std::vector<float>{7, 14}));
  EXPECT_EQ(two.sum({q}).segments().size(), 3U);
  // A leaf that is only reshaped is not copied.
  const Tensor leaf = Counting({2, 3});
  EXPECT_EQ(leaf.flatten({}).data<float>().data(), leaf.data<float>().data());
  EXPECT_EQ(leaf.to({m, n}).data<float>().data(), leaf.data<float>().data());
}

TEST(TensorTest, LongGraphsAreCut) {
  const Tensor a = Counting({5}, 0).to({m});
  Tensor sum = a;
  for (int i = 0; i < 1000; ++i) sum = sum + Tensor::Constant(1);
  EXPECT_GT(sum.segments().size(), 1U);
  EXPECT_EQ(ValuesOf(sum), (std::vector<float>{1000, 1001, 1002, 1003, 1004}));
  // Neither making nor dropping a deep graph needs a deep stack.
  for (int i = 0; i < 200'000; ++i) sum = -sum;
}

TEST(TensorTest, ResultsStayUntilALeafIsSet) {
  Tensor a(Shape{2});
  const Tensor b = a.to({m}) * Tensor::Constant(2);
  a.set(std::vector<float>{1, 2});
  const std::shared_ptr<Buffer> first = b.buffer();
  EXPECT_EQ(b.buffer(), first);
  a.set(std::vector<float>{3, 4});
  EXPECT_EQ(ValuesOf(b), (std::vector<float>{6, 8}));
  EXPECT_EQ(first->data()[0], 2);  // an array that is held does not change
  b.force_recompute();
  EXPECT_NE(b.buffer(), first);
}

TEST(TensorTest, SchedulesBelongToTheStructure) {
  const Tensor a = Counting({8, 8}), b = Counting({8, 8});
  const Tensor c = Product(a, b);
  const looptree::LoopTree split = looptree::SplitLoop(c.loop_tree(), 0, 3).value();
  c.set(split);
  const Tensor again = Product(Counting({8, 8}, 1), b);
  EXPECT_EQ(looptree::IrTextOf(again.loop_tree()), looptree::IrTextOf(split));
  EXPECT_EQ(ValuesOf(c), ProductOf(a, b));
  const Tensor other = Product(Counting({8, 9}), Counting({9, 8}));
  const std::string message = MessageOf(Kind::kSchedule, [&] { other.set(split); });
  EXPECT_NE(message.find('8'), std::string::npos) << message;
  c.set(c.schedule()->start());
}

TEST(TensorTest, EverNewProgramsAreForgottenButNotChosenSchedules) {
  const Tensor a = Counting({4}).to({m});
  const Tensor chosen = a + Tensor::Constant(-1);
  chosen.set(looptree::SplitLoop(chosen.loop_tree(), 0, 2).value());
  const std::string ir = looptree::IrTextOf(chosen.loop_tree());
  for (int i = 0; i < 21'000; ++i) (a * Tensor::Constant(i)).segments();
  EXPECT_LT(Session::Of().schedules().size(), 11'000U);
  EXPECT_EQ(looptree::IrTextOf((a + Tensor::Constant(-1)).loop_tree()), ir);
}

TEST(TensorTest, WhatIsNoLeafCannotBeSet) {
  Tensor sum = Counting({2}) + Counting({2});
  EXPECT_NE(MessageOf(Kind::kTensor, [&] { sum.fill(1); }).find("add"), std::string::npos);
  MessageOf(Kind::kTensor, [&] { Tensor(std::vector{m}).set_size({3}).resolve(); });
  MessageOf(Kind::kTensor, [&] { Counting({2}).loop_tree(); });
  MessageOf(Kind::kSizeConflict, [&] { Tensor(Shape{3}).set({4}, Buffer::Make(4)); });
  MessageOf(Kind::kShape, [&] { Tensor(Shape{3}).set({3, 1}, Buffer::Make(3)); });
  MessageOf(Kind::kShape, [&] { Tensor(Shape{3, 0}); });
  MessageOf(Kind::kShape, [&] { Counting({3}).sum({m}); });
  MessageOf(Kind::kShape, [&] { Counting({3}).to({m, n}); });
  MessageOf(Kind::kView, [&] { Counting({3})[Index(Expr(m) * Expr(n))]; });
  EXPECT_FALSE(TryTo([&] { return Counting({3}).to({m, n}); }));
  EXPECT_EQ(TryTo([&] { return Counting({3}).to({m}).shape(); }).value(), Shape{3});
}

}  // namespace
}  // namespace loopfleet::tensor
