#include "worker/llvm_env/observations/autophase.h"

#include <llvm/Analysis/CFG.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace loopfleet::worker {
namespace {

// In the order of the numbers.
enum Feature : std::size_t {
  kBBNumArgsHi,
  kBBNumArgsLo,
  kOnePred,
  kOnePredOneSuc,
  kOnePredTwoSuc,
  kOneSuccessor,
  kTwoPred,
  kTwoPredOneSuc,
  kTwoEach,
  kTwoSuccessor,
  kMorePreds,
  kBB03Phi,
  kBBHiPhi,
  kBBNoPhi,
  kBeginPhi,
  kBranchCount,
  kReturnInt,
  kCriticalCount,
  kNumEdges,
  kConst32Bit,
  kConst64Bit,
  kNumConstZeroes,
  kNumConstOnes,
  kUncondBranches,
  kBinaryConstArg,
  kNumAShrInst,
  kNumAddInst,
  kNumAllocaInst,
  kNumAndInst,
  kBlockMid,
  kBlockLow,
  kNumBitCastInst,
  kNumBrInst,
  kNumCallInst,
  kNumGetElementPtrInst,
  kNumICmpInst,
  kNumLShrInst,
  kNumLoadInst,
  kNumMulInst,
  kNumOrInst,
  kNumPHIInst,
  kNumRetInst,
  kNumSExtInst,
  kNumSelectInst,
  kNumShlInst,
  kNumStoreInst,
  kNumSubInst,
  kNumTruncInst,
  kNumXorInst,
  kNumZExtInst,
  kTotalBlocks,
  kTotalInsts,
  kTotalMemInst,
  kTotalFuncs,
  kArgsPhi,
  kTestUnary,
  kFeatureCount
};
static_assert(kFeatureCount == 56);

class Counter {
 public:
  void Visit(const llvm::Module& module) {
    for (const llvm::Function& function : module) {
      Add(kTotalFuncs);
      for (const llvm::BasicBlock& block : function) {
        VisitEdges(block);
        VisitPhis(block);
        VisitInstructions(block);
      }
    }
  }
  std::vector<std::int64_t> Take() { return std::move(counts_); }

 private:
  void Add(Feature feature, std::int64_t count = 1) { counts_[feature] += count; }
  void AddIf(bool condition, Feature feature) { counts_[feature] += condition ? 1 : 0; }

  // Predecessors and successors count as often as they are named.
  void VisitEdges(const llvm::BasicBlock& block) {
    const unsigned predecessors = llvm::pred_size(&block);
    const llvm::Instruction& terminator = *block.getTerminator();
    const unsigned successors = terminator.getNumSuccessors();
    AddIf(predecessors == 1, kOnePred);
    AddIf(predecessors == 1 && successors == 1, kOnePredOneSuc);
    AddIf(predecessors == 1 && successors == 2, kOnePredTwoSuc);
    AddIf(successors == 1, kOneSuccessor);
    AddIf(predecessors == 2, kTwoPred);
    AddIf(predecessors == 2 && successors == 1, kTwoPredOneSuc);
    AddIf(predecessors == 2 && successors == 2, kTwoEach);
    AddIf(successors == 2, kTwoSuccessor);
    AddIf(predecessors > 2, kMorePreds);
    Add(kNumEdges, successors);
    for (unsigned i = 0; i < successors; ++i) {
      AddIf(llvm::isCriticalEdge(&terminator, i), kCriticalCount);
    }
  }

  void VisitPhis(const llvm::BasicBlock& block) {
    std::int64_t phis = 0, incoming = 0;
    for (const llvm::PHINode& phi : block.phis()) {
      ++phis;
      incoming += phi.getNumIncomingValues();
    }
    AddIf(phis == 0, kBBNoPhi);
    AddIf(phis >= 1 && phis <= 3, kBB03Phi);
    AddIf(phis > 3, kBBHiPhi);
    AddIf(incoming > 5, kBBNumArgsHi);
    AddIf(incoming >= 1 && incoming <= 5, kBBNumArgsLo);
    AddIf(phis > 0, kBeginPhi);
    Add(kArgsPhi, incoming);
  }

  void VisitInstructions(const llvm::BasicBlock& block) {
    std::int64_t count = 0;
    for (const llvm::Instruction& instruction : block) {
      ++count;
      VisitOpcode(instruction);
      VisitOperands(instruction);
      AddIf(llvm::isa<llvm::UnaryInstruction>(instruction), kTestUnary);
    }
    Add(kTotalBlocks);
    Add(kTotalInsts, count);
    AddIf(count < 15, kBlockLow);
    AddIf(count >= 15 && count <= 500, kBlockMid);
  }

  void VisitOpcode(const llvm::Instruction& instruction) {
    using llvm::Instruction;
    switch (instruction.getOpcode()) {
      case Instruction::Br:
        Add(kBranchCount);
        Add(kNumBrInst);
        AddIf(llvm::cast<llvm::BranchInst>(instruction).isUnconditional(), kUncondBranches);
        break;
      case Instruction::Call: {
        const llvm::Function* callee = llvm::cast<llvm::CallInst>(instruction).getCalledFunction();
        AddIf(callee != nullptr && callee->getReturnType()->isIntegerTy(), kReturnInt);
        Add(kNumCallInst);
        Add(kTotalMemInst);
        break;
      }
      case Instruction::Alloca:
        Add(kNumAllocaInst);
        Add(kTotalMemInst);
        break;
      case Instruction::Load:
        Add(kNumLoadInst);
        Add(kTotalMemInst);
        break;
      case Instruction::Store:
        Add(kNumStoreInst);
        Add(kTotalMemInst);
        break;
      case Instruction::GetElementPtr:
        Add(kNumGetElementPtrInst);
        Add(kTotalMemInst);
        break;
      case Instruction::Invoke: Add(kTotalMemInst); break;
      case Instruction::AShr: Add(kNumAShrInst); break;
      case Instruction::Add: Add(kNumAddInst); break;
      case Instruction::And: Add(kNumAndInst); break;
      case Instruction::BitCast: Add(kNumBitCastInst); break;
      case Instruction::ICmp: Add(kNumICmpInst); break;
      case Instruction::LShr: Add(kNumLShrInst); break;
      case Instruction::Mul: Add(kNumMulInst); break;
      case Instruction::Or: Add(kNumOrInst); break;
      case Instruction::PHI: Add(kNumPHIInst); break;
      case Instruction::Ret: Add(kNumRetInst); break;
      case Instruction::SExt: Add(kNumSExtInst); break;
      case Instruction::Select: Add(kNumSelectInst); break;
      case Instruction::Shl: Add(kNumShlInst); break;
      case Instruction::Sub: Add(kNumSubInst); break;
      case Instruction::Trunc: Add(kNumTruncInst); break;
      case Instruction::Xor: Add(kNumXorInst); break;
      case Instruction::ZExt: Add(kNumZExtInst); break;
      default: break;
    }
  }

  void VisitOperands(const llvm::Instruction& instruction) {
    bool has_constant = false;
    for (const llvm::Use& operand : instruction.operands()) {
      has_constant = has_constant || llvm::isa<llvm::Constant>(operand);
      const auto* number = llvm::dyn_cast<llvm::ConstantInt>(operand);
      if (number == nullptr) continue;
      AddIf(number->getBitWidth() == 32, kConst32Bit);
      AddIf(number->getBitWidth() == 64, kConst64Bit);
      AddIf(number->isZero(), kNumConstZeroes);
      AddIf(number->isOne(), kNumConstOnes);
    }
    AddIf(has_constant && llvm::isa<llvm::BinaryOperator>(instruction), kBinaryConstArg);
  }

  std::vector<std::int64_t> counts_ = std::vector<std::int64_t>(kFeatureCount);
};

}  // namespace

std::vector<std::int64_t> AutophaseOf(const llvm::Module& module) {
  Counter counter;
  counter.Visit(module);
  return counter.Take();
}

}  // namespace loopfleet::worker
