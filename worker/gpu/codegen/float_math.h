#pragma once
// FloatMath: float32 exp and log as plain arithmetic, accurate to about two units in the last
// place. The result is the same on every machine with IEEE 754 arithmetic. A GPU has no C library.

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace loopfleet::worker {

llvm::Value* EmitExp(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitLog(llvm::IRBuilderBase& builder, llvm::Value* x);

}  // namespace loopfleet::worker
