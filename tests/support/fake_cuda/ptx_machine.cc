#include "tests/support/fake_cuda/ptx_machine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace loopfleet::fake_cuda {
namespace {

// Marks generic addresses that point to a thread's local memory.
constexpr std::uint64_t kLocalMark = std::uint64_t{1} << 60;

float AsFloat(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
std::uint64_t Bits(float value) { return std::bit_cast<std::uint32_t>(value); }

bool Is64(Type type) { return type == Type::kU64 || type == Type::kS64; }
std::int64_t Signed(Type type, std::uint64_t bits) {
  return Is64(type) ? static_cast<std::int64_t>(bits)
                    : static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
}
bool IsSigned(Type type) { return type == Type::kS32 || type == Type::kS64; }
std::uint64_t Cut(Type type, std::uint64_t bits) {
  if (type == Type::kPred) return bits & 1U;
  return Is64(type) ? bits : bits & 0xffffffffU;
}

template <class T>
bool CompareOrdered(const std::string& how, T a, T b) {
  if (how == "lt" || how == "ltu" || how == "lo") return a < b;
  if (how == "le" || how == "leu" || how == "ls") return a <= b;
  if (how == "gt" || how == "gtu" || how == "hi") return a > b;
  if (how == "ge" || how == "geu" || how == "hs") return a >= b;
  if (how == "eq" || how == "equ") return a == b;
  if (how == "ne" || how == "neu") return a != b;
  return how == "num";
}

bool Compare(const std::string& how, Type type, std::uint64_t a, std::uint64_t b) {
  if (type == Type::kF32) {
    const float x = AsFloat(a);
    const float y = AsFloat(b);
    if (std::isnan(x) || std::isnan(y)) return how.back() == 'u' || how == "nan";
    return CompareOrdered(how, x, y);
  }
  if (IsSigned(type)) return CompareOrdered(how, Signed(type, a), Signed(type, b));
  return CompareOrdered(how, Cut(type, a), Cut(type, b));
}

float FloatOf(Op op, float a, float b, float c) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMulLo: return a * b;
    case Op::kFma: return std::fma(a, b, c);
    case Op::kDiv: return a / b;
    case Op::kRcp: return 1.0F / a;
    case Op::kSqrt: return std::sqrt(a);
    case Op::kNeg: return -a;
    case Op::kAbs: return std::abs(a);
    case Op::kMin: return std::fmin(a, b);
    case Op::kMax: return std::fmax(a, b);
    default: return a;
  }
}

std::uint64_t MulHi(Type type, std::uint64_t a, std::uint64_t b) {
  if (type == Type::kS32)
    return static_cast<std::uint64_t>((Signed(type, a) * Signed(type, b)) >> 32);
  return (Cut(type, a) * Cut(type, b)) >> 32U;
}

std::uint64_t Shifted(Type type, Op op, std::uint64_t a, std::uint64_t by) {
  const std::uint64_t width = Is64(type) ? 64 : 32;
  by &= 0xffffffffU;
  if (op == Op::kShl) return by >= width ? 0 : a << by;
  if (IsSigned(type)) {
    return static_cast<std::uint64_t>(Signed(type, a) >> std::min(by, width - 1));
  }
  return by >= width ? 0 : Cut(type, a) >> by;
}

std::uint64_t IntegerOf(Op op, Type type, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMulLo: return a * b;
    case Op::kMulHi: return MulHi(type, a, b);
    case Op::kShl:
    case Op::kShr: return Shifted(type, op, a, b);
    case Op::kAnd: return a & b;
    case Op::kOr: return a | b;
    case Op::kXor: return a ^ b;
    case Op::kNot: return ~a;
    case Op::kNeg: return 0 - a;
    case Op::kMin:
      return IsSigned(type) ? (Signed(type, a) < Signed(type, b) ? a : b) : std::min(a, b);
    case Op::kMax:
      return IsSigned(type) ? (Signed(type, a) > Signed(type, b) ? a : b) : std::max(a, b);
    case Op::kBfe: return (Cut(type, a) >> (b & 0xffU)) & ((std::uint64_t{1} << (c & 0xffU)) - 1);
    default: return a;
  }
}

std::uint64_t Converted(const Instruction& instruction, std::uint64_t value) {
  const Type to = instruction.type;
  const Type from = instruction.from;
  if (to == Type::kF32 && from != Type::kF32) {
    return Bits(IsSigned(from) ? static_cast<float>(Signed(from, value))
                               : static_cast<float>(Cut(from, value)));
  }
  if (from == Type::kF32 && to != Type::kF32) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(AsFloat(value)));
  }
  if (to == Type::kF32) {
    const float number = AsFloat(value);
    if (instruction.compare == "rni") return Bits(std::nearbyint(number));
    if (instruction.compare == "rmi") return Bits(std::floor(number));
    if (instruction.compare == "rpi") return Bits(std::ceil(number));
    return value;
  }
  return IsSigned(from) ? static_cast<std::uint64_t>(Signed(from, value)) : Cut(from, value);
}

class Block {
 public:
  Block(const Function& function, const Launch& launch, const Memory& memory, std::uint32_t block)
      : function_(function), launch_(launch), memory_(memory), block_(block) {
    // A fill pattern, so that reads of unwritten memory show.
    shared_.assign(function.shared_bytes, '\x7f');
    threads_.resize(launch.threads);
    for (Thread& thread : threads_) {
      thread.registers.resize(function.registers);
      thread.local.assign(function.local_bytes, '\x7f');
    }
  }

  int Run(std::uint64_t& instructions) {
    std::uint32_t turn = block_;
    for (;; ++turn) {
      std::size_t waiting = 0;
      for (std::uint32_t i = 0; i < threads_.size(); ++i) {
        // Forwards, backwards, or from the middle.
        const auto count = static_cast<std::uint32_t>(threads_.size());
        const std::uint32_t at = turn % 3 == 0   ? i
                                 : turn % 3 == 1 ? count - 1 - i
                                                 : (i + count / 2) % count;
        Thread& thread = threads_[at];
        if (thread.is_done) continue;
        if (const int code = RunToBarrier(thread, at, instructions); code != kSuccess) return code;
        if (!thread.is_done) ++waiting;
      }
      if (waiting == 0) return kSuccess;
      // If some threads have ended, those that wait would hang on a device.
      if (waiting != threads_.size()) return kLaunchFailed;
      // On some devices, threads that wait at different barriers would hang too.
      for (const Thread& thread : threads_) {
        if (thread.at != threads_.front().at) return kLaunchFailed;
      }
    }
  }

 private:
  struct Thread {
    std::vector<std::uint64_t> registers;
    std::vector<char> local;
    std::size_t at = 0;
    bool is_done = false;
  };

  std::uint64_t Value(const Thread& thread, std::uint32_t number, const Operand& operand) const {
    switch (operand.kind) {
      case Operand::Kind::kRegister: return thread.registers[operand.value];
      case Operand::Kind::kThread: return number;
      case Operand::Kind::kBlock: return block_;
      case Operand::Kind::kThreads: return launch_.threads;
      case Operand::Kind::kBlocks: return launch_.blocks;
      default: return operand.value;
    }
  }

  char* Where(Thread& thread, Space space, std::uint64_t address, std::size_t bytes) {
    std::vector<char>* own = nullptr;
    if (space == Space::kShared) own = &shared_;
    if (space == Space::kLocal) own = &thread.local;
    if (own == nullptr) return memory_(address, bytes);
    return address <= own->size() && own->size() - address >= bytes ? own->data() + address
                                                                    : nullptr;
  }

  int Move(Thread& thread, std::uint32_t number, const Instruction& instruction) {
    const std::uint64_t address = Value(thread, number, instruction.operands[0]) +
                                  static_cast<std::uint64_t>(instruction.offset);
    if (instruction.space == Space::kParam) {
      thread.registers[instruction.operands[1].value] = launch_.arguments[address];
      return kSuccess;
    }
    const std::size_t width = Is64(instruction.type) ? 8 : 4;
    const std::size_t count = instruction.operands.size() - 1;
    if (address % (width * count) != 0) return kMisalignedAddress;
    char* at = Where(thread, instruction.space, address, width * count);
    if (at == nullptr) return kIllegalAddress;
    for (std::size_t i = 1; i <= count; ++i, at += width) {
      const Operand& operand = instruction.operands[i];
      if (instruction.op == Op::kLoad) {
        std::uint64_t value = 0;
        std::memcpy(&value, at, width);
        thread.registers[operand.value] = value;
      } else {
        const std::uint64_t value = Value(thread, number, operand);
        std::memcpy(at, &value, width);
      }
    }
    return kSuccess;
  }

  std::uint64_t Computed(const Thread& thread, std::uint32_t number,
                         const Instruction& instruction) const {
    const auto value = [&](std::size_t i) {
      return i < instruction.operands.size() ? Value(thread, number, instruction.operands[i]) : 0;
    };
    const std::uint64_t a = value(1);
    const std::uint64_t b = value(2);
    const std::uint64_t c = value(3);
    switch (instruction.op) {
      case Op::kMov: return a;
      case Op::kCvt: return Cut(instruction.type, Converted(instruction, a));
      case Op::kSetp: return Compare(instruction.compare, instruction.type, a, b) ? 1 : 0;
      case Op::kSelp: return (c & 1U) != 0 ? a : b;
      case Op::kToGeneric: return instruction.space == Space::kLocal ? a | kLocalMark : a;
      case Op::kFromGeneric: return a & ~kLocalMark;
      default: break;
    }
    if (instruction.type == Type::kF32) {
      return Bits(FloatOf(instruction.op, AsFloat(a), AsFloat(b), AsFloat(c)));
    }
    return Cut(instruction.type, IntegerOf(instruction.op, instruction.type, a, b, c));
  }

  int RunToBarrier(Thread& thread, std::uint32_t number, std::uint64_t& instructions) {
    while (thread.at < function_.code.size()) {
      const Instruction& instruction = function_.code[thread.at++];
      ++instructions;
      if (instruction.guard >= 0) {
        const bool holds =
            (thread.registers[static_cast<std::size_t>(instruction.guard)] & 1U) != 0;
        if (holds == instruction.guard_negated) continue;
      }
      switch (instruction.op) {
        case Op::kBarrier: return kSuccess;
        case Op::kReturn: thread.is_done = true; return kSuccess;
        case Op::kTrap: return kLaunchFailed;
        case Op::kBranch: thread.at = instruction.target; break;
        case Op::kLoad:
        case Op::kStore:
          if (const int code = Move(thread, number, instruction); code != kSuccess) return code;
          break;
        default:
          thread.registers[instruction.operands[0].value] = Computed(thread, number, instruction);
      }
    }
    thread.is_done = true;
    return kSuccess;
  }

  const Function& function_;
  const Launch& launch_;
  const Memory& memory_;
  const std::uint32_t block_;
  std::vector<char> shared_;
  std::vector<Thread> threads_;
};

}  // namespace

int RunFunction(const Function& function, const Launch& launch, const Memory& memory,
                std::uint64_t& instructions) {
  for (std::uint32_t block = 0; block < launch.blocks; ++block) {
    const int code = Block(function, launch, memory, block).Run(instructions);
    if (code != kSuccess) return code;
  }
  return kSuccess;
}

}  // namespace loopfleet::fake_cuda
