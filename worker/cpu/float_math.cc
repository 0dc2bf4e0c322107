#include "worker/cpu/float_math.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace loopfleet::worker {
namespace {

using llvm::IRBuilderBase;
using llvm::Value;

// Constants for each lane of `x`.
Value* Float(Value* x, double value) { return llvm::ConstantFP::get(x->getType(), value); }
Value* Integer(Value* x, std::uint32_t value) {
  return llvm::ConstantInt::get(
      x->getType()->getWithNewType(llvm::Type::getInt32Ty(x->getContext())), value);
}

// a * b + c
Value* MulAdd(IRBuilderBase& builder, Value* a, Value* b, Value* c) {
  return builder.CreateIntrinsic(a->getType(), llvm::Intrinsic::fmuladd, {a, b, c});
}

// Horner's scheme, the highest coefficient first.
Value* Polynomial(IRBuilderBase& builder, Value* x, std::initializer_list<double> coefficients) {
  Value* sum = nullptr;
  for (double coefficient : coefficients) {
    Value* next = Float(x, coefficient);
    sum = sum == nullptr ? next : MulAdd(builder, sum, x, next);
  }
  return sum;
}

Value* Bits(IRBuilderBase& builder, Value* x) {
  return builder.CreateBitCast(x, x->getType()->getWithNewType(builder.getInt32Ty()));
}
Value* FromBits(IRBuilderBase& builder, Value* bits) {
  return builder.CreateBitCast(bits, bits->getType()->getWithNewType(builder.getFloatTy()));
}

// a * b + c with one rounding.
Value* Fused(IRBuilderBase& builder, Value* a, Value* b, Value* c) {
  return builder.CreateIntrinsic(a->getType(), llvm::Intrinsic::fma, {a, b, c});
}

Value* Magnitude(IRBuilderBase& builder, Value* x) {
  return builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
}

// `size`, which is not negative, with the sign of `x`.
Value* WithSign(IRBuilderBase& builder, Value* size, Value* x) {
  Value* sign = builder.CreateAnd(Bits(builder, x), Integer(x, 0x80000000U));
  return FromBits(builder, builder.CreateOr(Bits(builder, size), sign));
}

// 2^n * y, in two factors, because 2^n itself may overflow or underflow.
Value* Scaled(IRBuilderBase& builder, Value* y, Value* n) {
  Value* half = builder.CreateAShr(n, 1);
  for (Value* part : {half, builder.CreateSub(n, half)}) {
    Value* power = builder.CreateShl(builder.CreateAdd(part, Integer(y, 127)), 23);
    y = builder.CreateFMul(y, FromBits(builder, power));
  }
  return y;
}

// x / (pi / 2), rounded: as a number, and as an integer. With the distance from it.
struct Quarter {
  Value* number = nullptr;
  Value* rest = nullptr;
};
Quarter QuarterOf(IRBuilderBase& builder, Value* x) {
  // Larger numbers are taken for 0. Infinity and NaN give NaN.
  Value* near = builder.CreateFCmpOLT(Magnitude(builder, x), Float(x, 0x1p22));
  x = builder.CreateSelect(near, x, builder.CreateFSub(x, x));
  Value* shifter = Float(x, 12582912.0);
  Value* shifted =
      builder.CreateFAdd(builder.CreateFMul(x, Float(x, 0.636619772367581343)), shifter);
  Value* n = builder.CreateFNeg(builder.CreateFSub(shifted, shifter));
  // pi / 2 in three parts. The first product is exact, so no digits of the rest are lost.
  Value* rest = x;
  for (const double part : {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50}) {
    rest = Fused(builder, n, Float(x, part), rest);
  }
  return {Bits(builder, shifted), rest};
}

// The sine of `rest` plus `quarters` quarters of a circle; the polynomials are those of Cephes.
Value* Wave(IRBuilderBase& builder, Value* rest, Value* quarters) {
  Value* square = builder.CreateFMul(rest, rest);
  Value* sine = Polynomial(builder, square, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1});
  sine = MulAdd(builder, builder.CreateFMul(sine, square), rest, rest);
  Value* cosine = Polynomial(builder, square,
                             {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2});
  cosine = MulAdd(builder, builder.CreateFMul(cosine, square), square,
                  MulAdd(builder, square, Float(rest, -0.5), Float(rest, 1)));
  const auto has = [&](std::uint32_t bit) {
    return builder.CreateICmpNE(builder.CreateAnd(quarters, Integer(rest, bit)), Integer(rest, 0));
  };
  Value* wave = builder.CreateSelect(has(1), cosine, sine);
  wave = builder.CreateSelect(has(2), builder.CreateFNeg(wave), wave);
  // Where the quarters of a large number came out one too many or too few.
  for (const double bound : {1.0, -1.0}) {
    Value* limit = Float(rest, bound);
    Value* beyond =
        bound > 0 ? builder.CreateFCmpOGT(wave, limit) : builder.CreateFCmpOLT(wave, limit);
    wave = builder.CreateSelect(beyond, limit, wave);
  }
  return wave;
}

// A sum of two numbers, the second far smaller: about 48 bits.
struct Pair {
  Value* high = nullptr;
  Value* low = nullptr;
};

// a + b, where |a| >= |b| or a is 0, plus `low`.
Pair PairSum(IRBuilderBase& builder, Value* a, Value* b, Value* low) {
  Value* high = builder.CreateFAdd(a, b);
  Value* lost = builder.CreateFSub(b, builder.CreateFSub(high, a));
  return {high, builder.CreateFAdd(lost, low)};
}

// The binary logarithm of a positive, finite number.
Pair BinaryLog(IRBuilderBase& builder, Value* x) {
  Value* tiny = builder.CreateFCmpOLT(x, Float(x, 0x1p-126));
  Value* normal = builder.CreateSelect(tiny, builder.CreateFMul(x, Float(x, 0x1p23)), x);
  // x = 2^exponent * m with m from sqrt(1/2) to sqrt(2)
  Value* bits = builder.CreateSub(Bits(builder, normal), Integer(x, 0x3f3504f3));
  Value* exponent = builder.CreateAShr(bits, 23);
  Value* m = FromBits(builder,
                      builder.CreateAdd(builder.CreateAnd(bits, 0x7fffff), Integer(x, 0x3f3504f3)));
  exponent = builder.CreateSub(exponent, builder.CreateSelect(tiny, Integer(x, 23), Integer(x, 0)));
  // ln m = 2 (s + s^3 / 3 + s^5 / 5 ...) with s = (m - 1) / (m + 1), which is divided exactly
  Value* one = Float(x, 1);
  Value* above = builder.CreateFSub(m, one);
  Value* below = builder.CreateFAdd(m, one);
  Value* below_low = builder.CreateFSub(m, builder.CreateFSub(below, one));
  Value* s = builder.CreateFDiv(above, below);
  Value* back = builder.CreateFNeg(s);
  Value* left = Fused(builder, back, below_low, Fused(builder, back, below, above));
  Value* s_low = builder.CreateFDiv(left, below);
  Value* square = builder.CreateFMul(s, s);
  Value* tail = Polynomial(builder, square, {2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3});
  tail = builder.CreateFMul(builder.CreateFMul(tail, square), s);
  Value* two = Float(x, 2);
  const Pair ln =
      PairSum(builder, builder.CreateFMul(two, s), MulAdd(builder, two, s_low, tail), Float(x, 0));
  // times log2(e), in two parts
  Value* high_factor = Float(x, 0x1.715476p+0);
  Value* high = builder.CreateFMul(ln.high, high_factor);
  Value* low = Fused(builder, ln.high, high_factor, builder.CreateFNeg(high));
  low = MulAdd(builder, ln.high, Float(x, 0x1.4ae0cp-26), low);
  low = MulAdd(builder, ln.low, high_factor, low);
  return PairSum(builder, builder.CreateSIToFP(exponent, x->getType()), high, low);
}

// 2^(high + low)
Value* BinaryPower(IRBuilderBase& builder, Pair exponent) {
  // Beyond these bounds the result is infinite or 0.
  Value* high = exponent.high;
  Value* low = exponent.low;
  for (const double bound : {200.0, -200.0}) {
    Value* limit = Float(exponent.high, bound);
    Value* beyond =
        bound > 0 ? builder.CreateFCmpOGT(high, limit) : builder.CreateFCmpOLT(high, limit);
    high = builder.CreateSelect(beyond, limit, high);
    low = builder.CreateSelect(beyond, Float(exponent.high, 0), low);
  }
  Value* shifter = Float(exponent.high, 12582912.0);
  Value* shifted = builder.CreateFAdd(high, shifter);
  Value* n = builder.CreateSub(Bits(builder, shifted), Bits(builder, shifter));
  Value* f =
      builder.CreateFAdd(builder.CreateFSub(high, builder.CreateFSub(shifted, shifter)), low);
  // Taylor's series of 2^f
  Value* tail = Polynomial(builder, f,
                           {1.52527338e-5, 1.54035304e-4, 1.33335581e-3, 9.61812911e-3,
                            5.55041087e-2, 2.40226507e-1, 6.93147181e-1});
  return Scaled(builder, MulAdd(builder, tail, f, Float(exponent.high, 1)), n);
}

// ln 2 in two parts. The first has so few bits that small multiples of it are exact.
constexpr double kLn2High = 0.693359375;
constexpr double kLn2Low = -2.12194440e-4;

}  // namespace

// exp(x) = 2^n * exp(r) with r = x - n ln 2, |r| <= ln 2 / 2; the polynomial is that of Cephes'
// expf (S. Moshier, "Methods and programs for mathematical functions", 1989).
Value* EmitExp(IRBuilderBase& builder, Value* x) {
  // Beyond these bounds the result is infinite or 0 anyway. A NaN fails both comparisons and stays.
  Value* high = Float(x, 89);
  Value* low = Float(x, -104);
  x = builder.CreateSelect(builder.CreateFCmpOGT(x, high), high, x);
  x = builder.CreateSelect(builder.CreateFCmpOLT(x, low), low, x);
  // Adding this leaves the nearest integer in the low bits of the sum.
  Value* shifter = Float(x, 12582912.0);
  Value* shifted =
      builder.CreateFAdd(builder.CreateFMul(x, Float(x, 1.44269504088896341)), shifter);
  Value* n = builder.CreateFSub(shifted, shifter);
  Value* integer = builder.CreateSub(Bits(builder, shifted), Bits(builder, shifter));
  Value* r = MulAdd(builder, n, Float(x, -kLn2High), x);
  r = MulAdd(builder, n, Float(x, -kLn2Low), r);
  Value* tail = Polynomial(builder, r,
                           {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                            1.6666665459e-1, 5.0000001201e-1});
  Value* y = MulAdd(builder, tail, builder.CreateFMul(r, r), r);
  y = builder.CreateFAdd(y, Float(x, 1));
  return Scaled(builder, y, integer);
}

// log(x) = e ln 2 + log(m) with m in [sqrt(1/2), sqrt(2)); the polynomial is that of Cephes' logf.
Value* EmitLog(IRBuilderBase& builder, Value* x) {
  // Scales a subnormal to a normal number first.
  Value* tiny = builder.CreateFCmpOLT(x, Float(x, 0x1p-126));
  Value* normal = builder.CreateSelect(tiny, builder.CreateFMul(x, Float(x, 0x1p23)), x);
  Value* bits = Bits(builder, normal);
  Value* exponent = builder.CreateSub(builder.CreateLShr(bits, 23), Integer(x, 126));
  exponent = builder.CreateSub(exponent, builder.CreateSelect(tiny, Integer(x, 23), Integer(x, 0)));
  Value* half_to_one = FromBits(
      builder, builder.CreateOr(builder.CreateAnd(bits, 0x7fffff), Integer(x, 0x3f000000)));
  Value* small = builder.CreateFCmpOLT(half_to_one, Float(x, 0.707106781186547524));
  exponent = builder.CreateSub(exponent, builder.CreateZExt(small, exponent->getType()));
  Value* m = builder.CreateFSub(
      builder.CreateSelect(small, builder.CreateFAdd(half_to_one, half_to_one), half_to_one),
      Float(x, 1));
  Value* e = builder.CreateSIToFP(exponent, x->getType());
  Value* square = builder.CreateFMul(m, m);
  Value* y = Polynomial(
      builder, m,
      {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
       -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  y = builder.CreateFMul(builder.CreateFMul(y, m), square);
  y = MulAdd(builder, e, Float(x, kLn2Low), y);
  y = MulAdd(builder, square, Float(x, -0.5), y);
  Value* result = MulAdd(builder, e, Float(x, kLn2High), builder.CreateFAdd(m, y));
  // Special cases: NaN and infinity (both stay), 0, negative numbers.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Value* zero = Float(x, 0);
  result = builder.CreateSelect(builder.CreateFCmpUEQ(x, Float(x, kInfinity)),
                                builder.CreateFAdd(x, x), result);
  result = builder.CreateSelect(builder.CreateFCmpOLT(x, zero),
                                Float(x, std::numeric_limits<double>::quiet_NaN()), result);
  return builder.CreateSelect(builder.CreateFCmpOEQ(x, zero), Float(x, -kInfinity), result);
}

// Near 0 Cephes' polynomial, otherwise 1 - 2 / (exp(2 |x|) + 1).
Value* EmitTanh(IRBuilderBase& builder, Value* x) {
  Value* size = Magnitude(builder, x);
  Value* square = builder.CreateFMul(x, x);
  Value* near = Polynomial(builder, square,
                           {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                            1.33314422036e-1, -3.33332819422e-1});
  near = MulAdd(builder, builder.CreateFMul(near, square), x, x);
  Value* one = Float(x, 1);
  Value* grown = EmitExp(builder, builder.CreateFAdd(size, size));
  Value* far =
      builder.CreateFSub(one, builder.CreateFDiv(Float(x, 2), builder.CreateFAdd(grown, one)));
  return builder.CreateSelect(builder.CreateFCmpOLT(size, Float(x, 0.625)), near,
                              WithSign(builder, far, x));
}

// Least-squares fits: of erf(x) / x in x^2 up to 1, and beyond of -ln(1 - erf(x)), up to 4, where
// erf is 1.
Value* EmitErf(IRBuilderBase& builder, Value* x) {
  Value* size = Magnitude(builder, x);
  Value* square = builder.CreateFMul(x, x);
  Value* near = Polynomial(builder, square,
                           {7.8825004150e-5, -8.0188590047e-4, 5.1893128114e-3, -2.6854329538e-2,
                            1.1283597492e-1, -3.7612626908e-1, 1.283791659e-1});
  near = MulAdd(builder, near, x, x);
  Value* four = Float(x, 4);
  Value* bounded = builder.CreateSelect(builder.CreateFCmpOGT(size, four), four, size);
  Value* exponent = Polynomial(builder, bounded,
                               {-1.8655530140e-4, 2.9489824812e-3, -2.1841858591e-2,
                                1.0311178455e-1, 6.3814209529e-1, 1.1270891674, 3.4190018521e-4});
  Value* far = builder.CreateFSub(Float(x, 1), EmitExp(builder, builder.CreateFNeg(exponent)));
  return builder.CreateSelect(builder.CreateFCmpOLT(size, Float(x, 1)), near,
                              WithSign(builder, far, x));
}

Value* EmitSin(IRBuilderBase& builder, Value* x) {
  const Quarter quarter = QuarterOf(builder, x);
  return Wave(builder, quarter.rest, quarter.number);
}

Value* EmitCos(IRBuilderBase& builder, Value* x) {
  const Quarter quarter = QuarterOf(builder, x);
  return Wave(builder, quarter.rest, builder.CreateAdd(quarter.number, Integer(x, 1)));
}

// 2^(y log2 |x|), with the logarithm to about 48 bits, as y may multiply its error by a hundred.
Value* EmitPower(IRBuilderBase& builder, Value* x, Value* y) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Value* zero = Float(x, 0);
  Value* one = Float(x, 1);
  Value* infinity = Float(x, kInfinity);
  Value* size = Magnitude(builder, x);
  const Pair log = BinaryLog(builder, size);
  Value* high = builder.CreateFMul(y, log.high);
  Value* low = Fused(builder, y, log.high, builder.CreateFNeg(high));
  low = MulAdd(builder, y, log.low, low);
  Value* power = BinaryPower(builder, {high, low});
  // 0 and infinity, to any power; any number to an infinite one.
  const auto choose = [&](Value* grows) { return builder.CreateSelect(grows, infinity, zero); };
  Value* rises = builder.CreateFCmpOGT(y, zero);
  power = builder.CreateSelect(builder.CreateFCmpOEQ(size, zero), choose(builder.CreateNot(rises)),
                               power);
  power = builder.CreateSelect(builder.CreateFCmpOEQ(size, infinity), choose(rises), power);
  Value* endless = builder.CreateFCmpOEQ(Magnitude(builder, y), infinity);
  Value* away = choose(builder.CreateICmpEQ(builder.CreateFCmpOGT(size, one), rises));
  away = builder.CreateSelect(builder.CreateFCmpOEQ(size, one), one, away);
  power = builder.CreateSelect(endless, away, power);
  // Negative numbers: only whole powers, odd ones are negative.
  const auto floor = [&](Value* number) {
    return builder.CreateUnaryIntrinsic(llvm::Intrinsic::floor, number);
  };
  Value* half = builder.CreateFMul(y, Float(x, 0.5));
  Value* whole = builder.CreateFCmpOEQ(floor(y), y);
  Value* odd = builder.CreateAnd(whole, builder.CreateFCmpONE(floor(half), half));
  Value* negative = builder.CreateICmpSLT(Bits(builder, x), Integer(x, 0));
  power = builder.CreateSelect(builder.CreateAnd(negative, odd), builder.CreateFNeg(power), power);
  Value* senseless =
      builder.CreateAnd(builder.CreateFCmpOLT(x, zero),
                        builder.CreateAnd(builder.CreateFCmpONE(floor(y), y),
                                          builder.CreateFCmpOGT(x, Float(x, -kInfinity))));
  Value* nan = Float(x, std::numeric_limits<double>::quiet_NaN());
  power = builder.CreateSelect(senseless, nan, power);
  power = builder.CreateSelect(builder.CreateFCmpUNO(x, y), nan, power);
  Value* always_one =
      builder.CreateOr(builder.CreateFCmpOEQ(x, one), builder.CreateFCmpOEQ(y, zero));
  return builder.CreateSelect(always_one, one, power);
}

}  // namespace loopfleet::worker
