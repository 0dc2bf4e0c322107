#include "tensor/symbol.h"

#include <gtest/gtest.h>

namespace loopfleet::tensor {
namespace {

TEST(SymbolTest, EachIsItsOwn) {
  const Symbol a("k"), b("k");
  EXPECT_EQ(a, a);
  EXPECT_FALSE(a == b);
  EXPECT_EQ(a.name(), b.name());
  const Symbol fresh = Symbol::Fresh();
  EXPECT_EQ(fresh.name().front(), '_');
  EXPECT_TRUE(Symbol::Named(fresh).is_fresh());
  EXPECT_EQ(Symbol::Named(a).name(), "k");
}

TEST(ExprTest, AddsAndScales) {
  const Symbol i("i"), j("j");
  EXPECT_EQ((Expr(i) * Expr(2) + Expr(j) - Expr(3)).ToString(), "2 * i + j - 3");
  EXPECT_EQ((Expr(i) - Expr(i)).ToString(), "0");
  EXPECT_EQ((-Expr(i)).ToString(), "-i");
  EXPECT_EQ((Size(i) + Expr(2)).ToString(), "Size(i) + 2");
  EXPECT_EQ((Expr(i) + Expr(1)).DividedBy(2).ToString(), "(i + 1) // 2");
  EXPECT_EQ((Expr(i).DividedBy(2) + Expr(1)).ToString(), "(i + 2) // 2");
  EXPECT_EQ(Expr(6).DividedBy(3).ToString(), "2");
}

TEST(ExprTest, WhatIsNotAffineSaysWhy) {
  const Symbol m("m"), n("n");
  EXPECT_EQ((Expr(m) * Expr(n)).problem(), "(m) * (n) is a product of symbols");
  EXPECT_NE(Expr(m).DividedBy(0).problem(), "");
  EXPECT_NE((Expr(m).DividedBy(2) * Expr(3)).problem(), "");
  EXPECT_EQ((Expr(m).DividedBy(2) + Expr(n).DividedBy(2)).problem(),
            "((m) // 2) + ((n) // 2) adds quotients");
  EXPECT_NE((Size(m).DividedBy(2) + Size(n).DividedBy(2)).problem(), "");
  EXPECT_NE((Expr(7).DividedBy(2) + Expr(m).DividedBy(2)).problem(), "");
  EXPECT_NE((Expr(7).DividedBy(2) + Expr(7).DividedBy(2)).problem(), "");
  EXPECT_NE((Expr(m).DividedBy(2) - Expr(n)).problem(), "");
  EXPECT_NE((Expr(INT64_MAX) * Expr(2)).problem(), "");
  EXPECT_NE((Expr(INT64_MAX) + Expr(2)).problem(), "");
}

}  // namespace
}  // namespace loopfleet::tensor
