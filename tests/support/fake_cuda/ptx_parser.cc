#include <cstdlib>
#include <cstring>
#include <sstream>

#include "tests/support/fake_cuda/ptx_machine.h"

namespace loopfleet::fake_cuda {
namespace {

constexpr std::uint64_t kMostShared = std::uint64_t{1} << 20;

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::string part;
  std::istringstream stream(text);
  while (std::getline(stream, part, at)) parts.push_back(part);
  return parts;
}

std::string Trim(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

const std::map<std::string, Op>& Operations() {
  static const std::map<std::string, Op> operations = {
      {"mov", Op::kMov},    {"add", Op::kAdd},   {"sub", Op::kSub},    {"shl", Op::kShl},
      {"shr", Op::kShr},    {"and", Op::kAnd},   {"or", Op::kOr},      {"xor", Op::kXor},
      {"not", Op::kNot},    {"neg", Op::kNeg},   {"abs", Op::kAbs},    {"min", Op::kMin},
      {"max", Op::kMax},    {"fma", Op::kFma},   {"div", Op::kDiv},    {"rcp", Op::kRcp},
      {"sqrt", Op::kSqrt},  {"setp", Op::kSetp}, {"selp", Op::kSelp},  {"cvt", Op::kCvt},
      {"ld", Op::kLoad},    {"st", Op::kStore},  {"bra", Op::kBranch}, {"bar", Op::kBarrier},
      {"ret", Op::kReturn}, {"bfe", Op::kBfe},   {"mul", Op::kMulLo},  {"cvta", Op::kToGeneric},
      {"trap", Op::kTrap}};
  return operations;
}

const std::map<std::string, Type>& Types() {
  static const std::map<std::string, Type> types = {
      {"u32", Type::kU32}, {"b32", Type::kU32}, {"s32", Type::kS32}, {"u64", Type::kU64},
      {"b64", Type::kU64}, {"s64", Type::kS64}, {"f32", Type::kF32}, {"pred", Type::kPred}};
  return types;
}

const std::map<std::string, Space>& Spaces() {
  static const std::map<std::string, Space> spaces = {{"global", Space::kGlobal},
                                                      {"shared", Space::kShared},
                                                      {"local", Space::kLocal},
                                                      {"param", Space::kParam}};
  return spaces;
}

class Parser {
 public:
  explicit Parser(std::string& problem) : problem_(problem) {}

  std::map<std::string, Function> Parse(const std::string& text) {
    std::istringstream stream(text);
    std::string line;
    while (std::getline(stream, line) && problem_.empty()) {
      if (const std::size_t comment = line.find("//"); comment != std::string::npos) {
        line.resize(comment);
      }
      line = Trim(line);
      if (!line.empty()) Line(line);
    }
    if (functions_.empty() && problem_.empty()) problem_ = "no kernel";
    if (!problem_.empty()) return {};
    return std::move(functions_);
  }

 private:
  void Line(std::string line) {
    if (const std::size_t at = line.find(".entry "); at != std::string::npos) {
      Begin(Trim(line.substr(at + 7, line.find('(') - at - 7)));
      // A short declaration may be on one line: .entry name(.param .u64 a)
      Parameters(line.substr(line.find('(') + 1));
      return;
    }
    if (line.starts_with(".param")) return Parameters(line);
    if (function_ == nullptr || line == "{" || line == ")") return;
    if (line == "}") return End();
    if (line.starts_with(".shared") || line.starts_with(".local")) return Variable(line);
    if (line.starts_with(".")) return;  // .reg, .maxntid, .pragma
    if (line.back() == ':') {
      labels_[line.substr(0, line.size() - 1)] = function_->code.size();
      return;
    }
    // A line may have several statements.
    for (const std::string& statement : Split(line, ';')) {
      if (const std::string trimmed = Trim(statement); !trimmed.empty()) Statement(trimmed);
    }
  }

  void Begin(const std::string& name) {
    function_ = &functions_[name];
    registers_.clear();
    symbols_.clear();
    labels_.clear();
    branches_.clear();
  }

  void Parameters(const std::string& text) {
    // Up to the bracket: "{" may follow it on the same line.
    for (const std::string& part : Split(text.substr(0, text.find(')')), ',')) {
      const std::string declaration = Trim(part);
      const std::size_t at = declaration.rfind(' ');
      if (declaration.find(".param") == std::string::npos || at == std::string::npos) continue;
      const std::string name = declaration.substr(at + 1);
      symbols_[name] = function_->parameters++;
    }
  }

  // .shared .align 16 .b8 name[8448];
  void Variable(const std::string& line) {
    const std::size_t open = line.find('[');
    const std::uint64_t bytes = std::strtoull(line.c_str() + open + 1, nullptr, 10);
    const std::size_t space = line.find_last_of(" \t", open);
    std::size_t& size =
        line.starts_with(".shared") ? function_->shared_bytes : function_->local_bytes;
    size = (size + 15) / 16 * 16;
    symbols_[line.substr(space + 1, open - space - 1)] = size;
    size += bytes;
    if (bytes > kMostShared) problem_ = "too much memory: " + line;
  }

  void End() {
    for (const auto& [index, label] : branches_) {
      if (!labels_.contains(label)) {
        problem_ = "no label " + label;
        return;
      }
      function_->code[index].target = labels_[label];
    }
    function_->registers = registers_.size();
    function_ = nullptr;
  }

  Operand Parsed(std::string text) {
    text = Trim(text);
    if (text == "%tid.x") return {.kind = Operand::Kind::kThread};
    if (text == "%ctaid.x") return {.kind = Operand::Kind::kBlock};
    if (text == "%ntid.x") return {.kind = Operand::Kind::kThreads};
    if (text == "%nctaid.x") return {.kind = Operand::Kind::kBlocks};
    if (text.starts_with("%")) {
      return {.kind = Operand::Kind::kRegister,
              .value = registers_.emplace(text, registers_.size()).first->second};
    }
    if (symbols_.contains(text)) return {.kind = Operand::Kind::kNumber, .value = symbols_[text]};
    if (text.starts_with("0f")) {
      return {.kind = Operand::Kind::kNumber,
              .value = std::strtoull(text.c_str() + 2, nullptr, 16)};
    }
    char* end = nullptr;
    const std::uint64_t number =
        text.starts_with("-") ? static_cast<std::uint64_t>(std::strtoll(text.c_str(), &end, 0))
                              : std::strtoull(text.c_str(), &end, 0);
    if (text.empty() || *end != '\0') problem_ = "what is " + text + "?";
    return {.kind = Operand::Kind::kNumber, .value = number};
  }

  // "[%rd1+16]"
  void Address(const std::string& text, Instruction& instruction) {
    std::string inside = Trim(text);
    inside = inside.substr(1, inside.size() - 2);
    if (const std::size_t sign = inside.find_first_of("+-", 1); sign != std::string::npos) {
      const std::size_t digits = inside[sign] == '+' ? sign + 1 : sign;
      instruction.offset = std::strtoll(inside.c_str() + digits, nullptr, 0);
      inside.resize(sign);
    }
    instruction.operands.push_back(Parsed(inside));
  }

  void Statement(const std::string& text) {
    Instruction instruction;
    std::string rest = text;
    if (rest.starts_with("@")) {
      const std::size_t space = rest.find_first_of(" \t");
      std::string name = rest.substr(1, space - 1);
      instruction.guard_negated = name.starts_with("!");
      if (instruction.guard_negated) name = name.substr(1);
      instruction.guard = static_cast<int>(Parsed(name).value);
      rest = Trim(rest.substr(space));
    }
    const std::size_t space = rest.find_first_of(" \t");
    const std::vector<std::string> words = Split(rest.substr(0, space), '.');
    const std::string arguments = space == std::string::npos ? "" : Trim(rest.substr(space));
    if (!Operations().contains(words.front())) {
      problem_ = "unknown instruction: " + text;
      return;
    }
    instruction.op = Operations().at(words.front());
    bool has_type = false;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (const auto type = Types().find(words[i]); type != Types().end()) {
        if (has_type) {
          instruction.from = type->second;
        } else {
          instruction.type = type->second;
        }
        has_type = true;
      }
      if (Spaces().contains(words[i])) instruction.space = Spaces().at(words[i]);
      if (words[i] == "rni" || words[i] == "rmi" || words[i] == "rpi") {
        instruction.compare = words[i];
      }
      if (words[i] == "hi") instruction.op = Op::kMulHi;
      if (words[i] == "to") instruction.op = Op::kFromGeneric;
      if (words[i] == "wide") problem_ = "unknown instruction: " + text;
    }
    if (instruction.op == Op::kSetp) instruction.compare = words[1];
    if (instruction.op == Op::kBranch) {
      branches_[function_->code.size()] = arguments;
    } else if (instruction.op == Op::kLoad || instruction.op == Op::kStore) {
      const std::size_t open = arguments.find('[');
      const std::size_t close = arguments.find(']');
      Address(arguments.substr(open, close - open + 1), instruction);
      std::string values = arguments.substr(0, open) + arguments.substr(close + 1);
      for (char& c : values) {
        if (c == '{' || c == '}' || c == ',') c = ' ';
      }
      std::istringstream stream(values);
      for (std::string value; stream >> value;) instruction.operands.push_back(Parsed(value));
    } else if (instruction.op != Op::kBarrier) {
      for (const std::string& argument : Split(arguments, ',')) {
        instruction.operands.push_back(Parsed(argument));
      }
    }
    function_->code.push_back(std::move(instruction));
  }

  std::string& problem_;
  std::map<std::string, Function> functions_;
  Function* function_ = nullptr;
  std::map<std::string, std::uint64_t> registers_;
  std::map<std::string, std::uint64_t> symbols_;
  std::map<std::string, std::size_t> labels_;
  std::map<std::size_t, std::string> branches_;
};

}  // namespace

std::map<std::string, Function> ParsePtx(const std::string& text, std::string& problem) {
  return Parser(problem).Parse(text);
}

}  // namespace loopfleet::fake_cuda
