#pragma once
// FloatMath: functions of float32 numbers, or of vectors of them, as plain arithmetic with fused
// multiply-adds. Accurate to three units in the last place, the sine and cosine of numbers up to
// 65,536. Equal numbers have equal results on every machine that fuses them, in whatever lane.

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace loopfleet::worker {

llvm::Value* EmitExp(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitLog(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitTanh(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitErf(llvm::IRBuilderBase& builder, llvm::Value* x);
// From -1 to 1 for every finite number; 0 and 1 beyond 2^22.
llvm::Value* EmitSin(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitCos(llvm::IRBuilderBase& builder, llvm::Value* x);
// The special cases are those of C's pow.
llvm::Value* EmitPower(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);

}  // namespace loopfleet::worker
