#pragma once
// PtxMachine: runs PTX, the text of it, on the CPU: so much of the language as LLVM writes for our
// kernels. The threads of a block take turns from one place where they wait to the next, in another
// order each time. For tests: it is slow, and knows nothing of how long a GPU would take.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace loopfleet::fake_cuda {

// The codes of cuda.h that a run may end with.
inline constexpr int kSuccess = 0;
inline constexpr int kInvalidPtx = 218;
inline constexpr int kIllegalAddress = 700;
inline constexpr int kMisalignedAddress = 716;
inline constexpr int kLaunchFailed = 719;

enum class Op : std::uint8_t {
  kMov,
  kAdd,
  kSub,
  kMulLo,
  kMulHi,
  kShl,
  kShr,
  kAnd,
  kOr,
  kXor,
  kNot,
  kNeg,
  kAbs,
  kMin,
  kMax,
  kFma,
  kDiv,
  kRcp,
  kSqrt,
  kSetp,
  kSelp,
  kCvt,
  kLoad,
  kStore,
  kBranch,
  kBarrier,
  kReturn,
  kBfe,
  kToGeneric,
  kFromGeneric,
  kTrap,
};
enum class Type : std::uint8_t { kU32, kS32, kU64, kS64, kF32, kPred };
enum class Space : std::uint8_t { kGlobal, kShared, kLocal, kParam };

struct Operand {
  enum class Kind : std::uint8_t { kNone, kRegister, kNumber, kThread, kBlock, kThreads, kBlocks };
  Kind kind = Kind::kNone;
  std::uint64_t value = 0;  // of the number, or the register's index
};

struct Instruction {
  Op op = Op::kReturn;
  Type type = Type::kU32;
  Type from = Type::kU32;  // of a conversion
  Space space = Space::kGlobal;
  std::string compare;  // "lt", "equ"
  int guard = -1;       // register of the predicate; -1: none
  bool guard_negated = false;
  std::int64_t offset = 0;  // of an address
  std::size_t target = 0;   // of a branch
  std::vector<Operand>
      operands;  // what is written comes first; of a load or store the address does
};

struct Function {
  std::vector<Instruction> code;
  std::size_t registers = 0;
  std::size_t parameters = 0;
  std::size_t shared_bytes = 0;
  std::size_t local_bytes = 0;
};

// By name. Empty: it is no PTX that this machine knows, and `problem` says why.
std::map<std::string, Function> ParsePtx(const std::string& text, std::string& problem);

struct Launch {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;
  std::vector<std::uint64_t> arguments;
};
// Where so many bytes lie that a kernel asks for at this address of the device; null: nowhere.
using Memory = std::function<char*(std::uint64_t address, std::size_t bytes)>;

// A code, and how many instructions it took.
int RunFunction(const Function& function, const Launch& launch, const Memory& memory,
                std::uint64_t& instructions);

}  // namespace loopfleet::fake_cuda
