#include "tensor/shape_solver.h"

#include <gtest/gtest.h>

#include <string>

#include "tensor/tensor.h"

namespace loopfleet::tensor {
namespace {

using Shape = Tensor::Shape;
using Kind = TensorError::Kind;

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

TEST(ShapeSolverTest, SizesComeBackwards) {
  const Symbol m("m"), n("n");
  Tensor a(std::vector{m}), b(std::vector{m, n});
  const Tensor c = a + b;
  b.set_size({128, 7});
  EXPECT_EQ(a.shape(), Shape{128});
  EXPECT_EQ(c.shape(), (Shape{128, 7}));
}

TEST(ShapeSolverTest, WindowsInBothDirections) {
  const Symbol o("o"), k("k"), n("n");
  Tensor x(std::vector{n}), w(Shape{3});
  const Tensor y = (x[Index(Expr(o) + Expr(k))] * w.to({k})).sum({k});
  EXPECT_NE(MessageOf(Kind::kSizeUnknown, [&] { y.shape(); }).find("Tensor(n)"), std::string::npos);
  const Symbol r("r");
  const Tensor z = (y.to({r}) * Tensor(Shape{8}).to({r})).sum();
  EXPECT_EQ(x.shape(), Shape{10});
  EXPECT_EQ(z.shape(), Shape{});
}

TEST(ShapeSolverTest, ConflictsNameBothSources) {
  const Symbol n("n");
  const std::string message = MessageOf(
      Kind::kSizeConflict, [&] { (Tensor(Shape{3}).to({n}) + Tensor(Shape{4}).to({n})).shape(); });
  EXPECT_NE(message.find('3'), std::string::npos) << message;
  EXPECT_NE(message.find('4'), std::string::npos) << message;
  EXPECT_NE(message.find('n'), std::string::npos) << message;
}

TEST(ShapeSolverTest, OneSymbolMayNameDifferentSizesInDifferentPlaces) {
  const Symbol m("m"), n("n"), k("k");
  const auto mm = [&](const Tensor& a, const Tensor& b) {
    return (a.to({m, k}) * b.to({k, n})).sum({k});
  };
  const Tensor product = mm(mm(Tensor(Shape{2, 3}), Tensor(Shape{3, 5})), Tensor(Shape{5, 7}));
  EXPECT_EQ(product.shape(), (Shape{2, 7}));
}

TEST(ShapeSolverTest, PadConcatAndReshapeWorkBothWays) {
  const Symbol m("m"), n("n"), p("p");
  Tensor a(std::vector{m, n});
  const Tensor padded = a.pad(n, 2, 3);
  const Tensor flat = padded.flatten({});
  const Tensor sum = flat.to({p}) + Tensor(Shape{40}).to({p});
  MessageOf(Kind::kSizeUnknown, [&] { a.shape(); });
  a.set_size({5, 3});
  EXPECT_EQ(padded.shape(), (Shape{5, 8}));
  EXPECT_EQ(sum.shape(), Shape{40});
  const Tensor both = Tensor(Shape{2, 3}).to({m, n}) | Tensor(Shape{2, 4}).to({m, p});
  EXPECT_EQ(both.shape(), (Shape{2, 7}));
  const Symbol q("q");
  EXPECT_EQ(Tensor(Shape{12}).to({n}).unflatten(n, {{p, 0}, {q, 4}}).shape(), (Shape{3, 4}));
  MessageOf(Kind::kSizeConflict,
            [&] { Tensor(Shape{12}).to({n}).unflatten(n, {{p, 0}, {q, 5}}).shape(); });
}

TEST(ShapeSolverTest, AWindowThatDoesNotFit) {
  const Symbol o("o"), k("k");
  MessageOf(Kind::kSizeConflict, [&] {
    (Tensor(Shape{3})[Index(Expr(o) + Expr(k))] * Tensor(Shape{5}).to({k})).shape();
  });
}

}  // namespace
}  // namespace loopfleet::tensor
