#pragma once
// FloatMath: exp and log of float32 as plain arithmetic, good to about two units in the last place,
// the same on every machine that multiplies and adds as IEEE 754 says. A GPU has no C library.

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace loopfleet::worker {

llvm::Value* EmitExp(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitLog(llvm::IRBuilderBase& builder, llvm::Value* x);

}  // namespace loopfleet::worker
