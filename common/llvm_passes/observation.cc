#include "common/llvm_passes/observation.h"

#include <fmt/format.h>

#include <array>

#include "common/base/check.h"
#include "common/base/suggestion.h"

namespace loopfleet::passes {
namespace {

using enum Observation;
using enum ValueType;

constexpr std::array kTable = {
    ObservationInfo{kIr, "Ir", kBytes},
    ObservationInfo{kIrSha1, "IrSha1", kBytes},
    ObservationInfo{kBitcode, "Bitcode", kBytes},
    ObservationInfo{kModuleHash, "ModuleHash", kBytes},
    ObservationInfo{kInstCount, "InstCount", kIntegers},
    ObservationInfo{kInstCountNorm, "InstCountNorm", kFloats},
    ObservationInfo{kAutophase, "Autophase", kIntegers},
    ObservationInfo{kPrograml, "Programl", kBytes},
    ObservationInfo{kProgramlJson, "ProgramlJson", kBytes},
    ObservationInfo{kProgramlJsonFullText, "ProgramlJsonFullText", kBytes},
    ObservationInfo{kIrInstructionCount, "IrInstructionCount", kInteger},
    ObservationInfo{kIrInstructionCountO0, "IrInstructionCountO0", kInteger, Baseline::kO0},
    ObservationInfo{kIrInstructionCountO3, "IrInstructionCountO3", kInteger, Baseline::kO3},
    ObservationInfo{kIrInstructionCountOz, "IrInstructionCountOz", kInteger, Baseline::kOz},
    ObservationInfo{kIrInstructionCountOzAttr, "IrInstructionCountOzAttr", kInteger,
                    Baseline::kOzAttr},
    ObservationInfo{kObjectTextSizeBytes, "ObjectTextSizeBytes", kInteger},
    ObservationInfo{kObjectTextSizeO2Bytes, "ObjectTextSizeO2Bytes", kInteger},
    ObservationInfo{kObjectTextSizeO0, "ObjectTextSizeO0", kInteger, Baseline::kO0},
    ObservationInfo{kObjectTextSizeO3, "ObjectTextSizeO3", kInteger, Baseline::kO3},
    ObservationInfo{kObjectTextSizeOz, "ObjectTextSizeOz", kInteger, Baseline::kOz},
};
static_assert(kTable.size() == static_cast<std::size_t>(kLastObservation) + 1);

// The last 67 are LLVM's instructions, by opcode.
constexpr std::array<std::string_view, 70> kInstCountNames = {
    "TotalInsts",
    "TotalBlocks",
    "TotalFuncs",
    "Ret",
    "Br",
    "Switch",
    "IndirectBr",
    "Invoke",
    "Resume",
    "Unreachable",
    "CleanupRet",
    "CatchRet",
    "CatchSwitch",
    "CallBr",
    "FNeg",
    "Add",
    "FAdd",
    "Sub",
    "FSub",
    "Mul",
    "FMul",
    "UDiv",
    "SDiv",
    "FDiv",
    "URem",
    "SRem",
    "FRem",
    "Shl",
    "LShr",
    "AShr",
    "And",
    "Or",
    "Xor",
    "Alloca",
    "Load",
    "Store",
    "GetElementPtr",
    "Fence",
    "AtomicCmpXchg",
    "AtomicRMW",
    "Trunc",
    "ZExt",
    "SExt",
    "FPToUI",
    "FPToSI",
    "UIToFP",
    "SIToFP",
    "FPTrunc",
    "FPExt",
    "PtrToInt",
    "IntToPtr",
    "BitCast",
    "AddrSpaceCast",
    "CleanupPad",
    "CatchPad",
    "ICmp",
    "FCmp",
    "PHI",
    "Call",
    "Select",
    "UserOp1",
    "UserOp2",
    "VAArg",
    "ExtractElement",
    "InsertElement",
    "ShuffleVector",
    "ExtractValue",
    "InsertValue",
    "LandingPad",
    "Freeze",
};

constexpr std::array<std::string_view, 56> kAutophaseNames = {
    "BBNumArgsHi",  "BBNumArgsLo",    "onePred",       "onePredOneSuc",  "onePredTwoSuc",
    "oneSuccessor", "twoPred",        "twoPredOneSuc", "twoEach",        "twoSuccessor",
    "morePreds",    "BB03Phi",        "BBHiPhi",       "BBNoPhi",        "BeginPhi",
    "BranchCount",  "returnInt",      "CriticalCount", "NumEdges",       "const32Bit",
    "const64Bit",   "numConstZeroes", "numConstOnes",  "UncondBranches", "binaryConstArg",
    "NumAShrInst",  "NumAddInst",     "NumAllocaInst", "NumAndInst",     "BlockMid",
    "BlockLow",     "NumBitCastInst", "NumBrInst",     "NumCallInst",    "NumGetElementPtrInst",
    "NumICmpInst",  "NumLShrInst",    "NumLoadInst",   "NumMulInst",     "NumOrInst",
    "NumPHIInst",   "NumRetInst",     "NumSExtInst",   "NumSelectInst",  "NumShlInst",
    "NumStoreInst", "NumSubInst",     "NumTruncInst",  "NumXorInst",     "NumZExtInst",
    "TotalBlocks",  "TotalInsts",     "TotalMemInst",  "TotalFuncs",     "ArgsPhi",
    "testUnary",
};

}  // namespace

std::span<const ObservationInfo> ObservationTable() { return kTable; }

const ObservationInfo& InfoOf(Observation observation) {
  const ObservationInfo& info = kTable.at(static_cast<std::size_t>(observation));
  LF_CHECK(info.observation == observation, "the table is not in the order of the enum");
  return info;
}

Result<Observation> ParseObservation(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ObservationInfo& info : kTable) {
    if (info.name == name) return info.observation;
    names.push_back(info.name);
  }
  return Fail(ErrorKind::kInvalid,
              fmt::format("unknown observation '{}'{}", name, NearestSuffix(name, names)));
}

std::span<const std::string_view> InstCountNames() { return kInstCountNames; }
std::span<const std::string_view> AutophaseNames() { return kAutophaseNames; }

}  // namespace loopfleet::passes
