#include "worker/gpu/codegen/float_math.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <initializer_list>
#include <limits>

namespace loopfleet::worker {
namespace {

using llvm::IRBuilderBase;
using llvm::Value;

Value* Float(IRBuilderBase& builder, double value) {
  return llvm::ConstantFP::get(builder.getFloatTy(), value);
}

// a * b + c
Value* MulAdd(IRBuilderBase& builder, Value* a, Value* b, Value* c) {
  return builder.CreateIntrinsic(builder.getFloatTy(), llvm::Intrinsic::fmuladd, {a, b, c});
}

// Horner's scheme, the highest coefficient first.
Value* Polynomial(IRBuilderBase& builder, Value* x, std::initializer_list<double> coefficients) {
  Value* sum = nullptr;
  for (double coefficient : coefficients) {
    Value* next = Float(builder, coefficient);
    sum = sum == nullptr ? next : MulAdd(builder, sum, x, next);
  }
  return sum;
}

Value* Bits(IRBuilderBase& builder, Value* x) {
  return builder.CreateBitCast(x, builder.getInt32Ty());
}
Value* FromBits(IRBuilderBase& builder, Value* bits) {
  return builder.CreateBitCast(bits, builder.getFloatTy());
}

// ln 2 in two parts. The first has so few bits that small multiples of it are exact.
constexpr double kLn2High = 0.693359375;
constexpr double kLn2Low = -2.12194440e-4;

}  // namespace

// exp(x) = 2^n * exp(r) with r = x - n ln 2, |r| <= ln 2 / 2; the polynomial is that of Cephes'
// expf (S. Moshier, "Methods and programs for mathematical functions", 1989).
Value* EmitExp(IRBuilderBase& builder, Value* x) {
  // Beyond these bounds the result is infinite or 0 anyway. A NaN fails both comparisons and stays.
  Value* high = Float(builder, 89);
  Value* low = Float(builder, -104);
  x = builder.CreateSelect(builder.CreateFCmpOGT(x, high), high, x);
  x = builder.CreateSelect(builder.CreateFCmpOLT(x, low), low, x);
  // Adding this leaves the nearest integer in the low bits of the sum.
  Value* shifter = Float(builder, 12582912.0);
  Value* shifted =
      builder.CreateFAdd(builder.CreateFMul(x, Float(builder, 1.44269504088896341)), shifter);
  Value* n = builder.CreateFSub(shifted, shifter);
  Value* integer = builder.CreateSub(Bits(builder, shifted), Bits(builder, shifter));
  Value* r = MulAdd(builder, n, Float(builder, -kLn2High), x);
  r = MulAdd(builder, n, Float(builder, -kLn2Low), r);
  Value* tail = Polynomial(builder, r,
                           {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                            1.6666665459e-1, 5.0000001201e-1});
  Value* y = MulAdd(builder, tail, builder.CreateFMul(r, r), r);
  y = builder.CreateFAdd(y, Float(builder, 1));
  // Multiplies by 2^n in two factors, because 2^n itself may overflow or underflow.
  Value* half = builder.CreateAShr(integer, 1);
  for (Value* part : {half, builder.CreateSub(integer, half)}) {
    Value* power = builder.CreateShl(builder.CreateAdd(part, builder.getInt32(127)), 23);
    y = builder.CreateFMul(y, FromBits(builder, power));
  }
  return y;
}

// log(x) = e ln 2 + log(m) with m in [sqrt(1/2), sqrt(2)); the polynomial is that of Cephes' logf.
Value* EmitLog(IRBuilderBase& builder, Value* x) {
  // Scales a subnormal to a normal number first.
  Value* tiny = builder.CreateFCmpOLT(x, Float(builder, 0x1p-126));
  Value* normal = builder.CreateSelect(tiny, builder.CreateFMul(x, Float(builder, 0x1p23)), x);
  Value* bits = Bits(builder, normal);
  Value* exponent = builder.CreateSub(builder.CreateLShr(bits, 23), builder.getInt32(126));
  exponent = builder.CreateSub(
      exponent, builder.CreateSelect(tiny, builder.getInt32(23), builder.getInt32(0)));
  Value* half_to_one = FromBits(
      builder, builder.CreateOr(builder.CreateAnd(bits, 0x7fffff), builder.getInt32(0x3f000000)));
  Value* small = builder.CreateFCmpOLT(half_to_one, Float(builder, 0.707106781186547524));
  exponent = builder.CreateSub(exponent, builder.CreateZExt(small, builder.getInt32Ty()));
  Value* m = builder.CreateFSub(
      builder.CreateSelect(small, builder.CreateFAdd(half_to_one, half_to_one), half_to_one),
      Float(builder, 1));
  Value* e = builder.CreateSIToFP(exponent, builder.getFloatTy());
  Value* square = builder.CreateFMul(m, m);
  Value* y = Polynomial(
      builder, m,
      {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
       -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  y = builder.CreateFMul(builder.CreateFMul(y, m), square);
  y = MulAdd(builder, e, Float(builder, kLn2Low), y);
  y = MulAdd(builder, square, Float(builder, -0.5), y);
  Value* result = MulAdd(builder, e, Float(builder, kLn2High), builder.CreateFAdd(m, y));
  // Special cases: NaN and infinity (both stay), 0, negative numbers.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Value* zero = Float(builder, 0);
  result = builder.CreateSelect(builder.CreateFCmpUEQ(x, Float(builder, kInfinity)),
                                builder.CreateFAdd(x, x), result);
  result = builder.CreateSelect(builder.CreateFCmpOLT(x, zero),
                                Float(builder, std::numeric_limits<double>::quiet_NaN()), result);
  return builder.CreateSelect(builder.CreateFCmpOEQ(x, zero), Float(builder, -kInfinity), result);
}

}  // namespace loopfleet::worker
