#pragma once
// PtxMachine: interprets PTX text on the CPU. Supports the subset of PTX that LLVM writes for our
// kernels. The threads of a block run one after the other between barriers, in a different order
// each time. For tests: slow, and without a model of a GPU's timing.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace loopfleet::fake_cuda {

// The CUresult codes that a run can end with.
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
  std::uint64_t value = 0;  // the number, or the register's index
};

struct Instruction {
  Op op = Op::kReturn;
  Type type = Type::kU32;
  Type from = Type::kU32;  // source type of a conversion
  Space space = Space::kGlobal;
  std::string compare;  // "lt", "equ"; of a conversion to a whole number "rni", "rmi", "rpi"
  int guard = -1;       // register of the predicate; -1: none
  bool guard_negated = false;
  std::int64_t offset = 0;  // of an address, in bytes
  std::size_t target = 0;   // of a branch, an index into the code
  // The destination first. For a load or store: the address first.
  std::vector<Operand> operands;
};

struct Function {
  std::vector<Instruction> code;
  std::size_t registers = 0;
  std::size_t parameters = 0;
  std::size_t shared_bytes = 0;
  std::size_t local_bytes = 0;
};

// The functions by name. Empty: not PTX that this machine supports, and `problem` says why.
std::map<std::string, Function> ParsePtx(const std::string& text, std::string& problem);

struct Launch {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;
  std::vector<std::uint64_t> arguments;
};
// Host pointer to `bytes` bytes at a device address. Null: not allocated.
using Memory = std::function<char*(std::uint64_t address, std::size_t bytes)>;

// Returns a code, and adds the instructions run to `instructions`.
int RunFunction(const Function& function, const Launch& launch, const Memory& memory,
                std::uint64_t& instructions);

}  // namespace loopfleet::fake_cuda
