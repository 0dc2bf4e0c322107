#pragma once
// LlvmO3: compiles a kernel's IR with LLVM's standard O3 pipeline and code generator. The peer of
// our compile latency.

#include <memory>
#include <string>

#include "common/base/result.h"

namespace loopfleet::bench {

class LlvmO3 {
 public:
  static Result<LlvmO3> Create();
  LlvmO3(LlvmO3&&) noexcept;
  ~LlvmO3();

  // Milliseconds from IR in memory to an object file in memory, without parsing the text.
  Result<double> Compile(const std::string& ir);

 private:
  struct State;
  explicit LlvmO3(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace loopfleet::bench
