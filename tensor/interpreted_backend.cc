#include <algorithm>
#include <utility>
#include <vector>

#include "common/looptree/interpreter/interpret.h"
#include "tensor/backend.h"

namespace loopfleet::tensor {
namespace {

class InterpretedTree final : public Runnable {
 public:
  explicit InterpretedTree(looptree::LoopTree tree) : tree_(std::move(tree)) {}

  void Run(const float* const* inputs, float* const* outputs) override {
    const looptree::Program& program = tree_.program();
    std::vector<looptree::Tensor> values;
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      const auto count = static_cast<std::size_t>(program.ElementCount(program.inputs[i]));
      values.emplace_back(inputs[i], inputs[i] + count);
    }
    const std::vector<looptree::Tensor> results = looptree::Interpret(tree_, values);
    for (std::size_t i = 0; i < results.size(); ++i) std::ranges::copy(results[i], outputs[i]);
  }
  std::uint64_t scratch_bytes() const override { return tree_.ScratchBytes(); }

 private:
  const looptree::LoopTree tree_;
};

class Interpreted final : public Backend {
 public:
  std::string name() const override { return "cpu_interpreted"; }
  std::shared_ptr<Runnable> Compile(const looptree::LoopTree& tree) override {
    return std::make_shared<InterpretedTree>(tree);
  }
};

}  // namespace

std::shared_ptr<Backend> InterpretedBackend() { return std::make_shared<Interpreted>(); }

}  // namespace loopfleet::tensor
