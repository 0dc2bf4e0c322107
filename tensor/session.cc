#include "tensor/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "common/looptree/text/text.h"
#include "tensor/lowering.h"
#include "tensor/shape_solver.h"
#include "tensor/tensor_error.h"

namespace loopfleet::tensor {
namespace {

constexpr double kLongRunNs = 10'000;            // from here on other threads may run meanwhile
constexpr std::uint64_t kLongRunFlop = 100'000;  // for kernels that have not run
constexpr std::size_t kMostPlans = 10'000;

// The structure of a graph in numbers: equal exactly for graphs with equal plans, as far as these
// follow from the graph itself. `nodes` as InOrder gives them.
void AppendStructure(const std::vector<Node*>& nodes, std::vector<std::uint64_t>& words) {
  thread_local std::vector<std::uint64_t> symbols;
  symbols.clear();
  // Numbered by first use; a dozen are found faster in a list than in a table.
  const auto number = [&](const Symbol& symbol) {
    for (std::size_t i = symbols.size(); i-- > 0;) {
      if (symbols[i] == symbol.id()) return static_cast<std::uint64_t>(i);
    }
    symbols.push_back(symbol.id());
    return static_cast<std::uint64_t>(symbols.size() - 1);
  };
  const auto put = [&](std::uint64_t word) { words.push_back(word); };
  const auto put_expr = [&](const Expr& expr) {
    put(expr.terms().size());
    put(static_cast<std::uint64_t>(expr.constant()));
    put(static_cast<std::uint64_t>(expr.divisor()));
    for (const Expr::Term& term : expr.terms()) {
      put(number(term.symbol) << 1 | static_cast<std::uint64_t>(term.is_size));
      put(static_cast<std::uint64_t>(term.coefficient));
    }
  };
  for (const Node* const node : nodes) {
    put(static_cast<std::uint64_t>(node->kind) | static_cast<std::uint64_t>(node->op) << 8 |
        static_cast<std::uint64_t>(node->inputs.size()) << 16 |
        static_cast<std::uint64_t>(node->symbols.size()) << 32);
    for (const NodePtr& input : node->inputs) put(input->place);
    for (const Symbol& symbol : node->symbols) put(number(symbol));
    switch (node->kind) {
      case Node::Kind::kLeaf:
        for (const std::int64_t size : node->bound) put(static_cast<std::uint64_t>(size));
        break;
      case Node::Kind::kConstant: put(std::bit_cast<std::uint64_t>(node->value)); break;
      case Node::Kind::kView:
        put(std::bit_cast<std::uint64_t>(node->value));
        for (const Expr& index : node->index) put_expr(index);
        [[fallthrough]];
      case Node::Kind::kReshape:
        put(node->axis | static_cast<std::uint64_t>(node->count) << 16 |
            static_cast<std::uint64_t>(node->new_count) << 32);
        put(node->sizes.size());
        for (const SizeEquation& equation : node->sizes) {
          put(number(equation.symbol));
          put_expr(equation.expr);
        }
        break;
      case Node::Kind::kCount:
        put(std::bit_cast<std::uint64_t>(node->value));
        put(node->index.size());
        for (const Expr& index : node->index) put_expr(index);
        break;
      case Node::Kind::kConcat: put(node->axis); break;
      default: break;
    }
  }
}

std::size_t CountOf(const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  return count;
}

}  // namespace

std::size_t Session::Hash::operator()(const std::vector<std::uint64_t>& words) const {
  std::uint64_t hash = words.size();
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

Runnable& Schedule::Code() { return *SharedCode(); }

const std::shared_ptr<Runnable>& Schedule::SharedCode() {
  if (!code_) {
    code_ = Session::Of().backend().Compile(tree_);
    if (const std::string remark = code_->remark(); !remark.empty()) Session::Of().Tell(remark);
  }
  return code_;
}

void Schedule::Set(looptree::LoopTree tree) {
  is_set_ = true;
  tree_ = std::move(tree);
  code_.reset();
  run_ns_ = 0;
  runs_ = 0;
}

void Schedule::AddRun(double ns) { run_ns_ = runs_++ == 0 ? ns : std::min(run_ns_, ns); }

Session& Session::Of() {
  static Session* const session = new Session;  // used by what ends after static destructors
  return *session;
}

void Session::SetBackend(std::shared_ptr<Backend> backend) {
  backend_ = std::move(backend);
  for (const auto& [key, schedule] : schedules_) schedule->DropCode();
}

Backend& Session::backend() {
  if (!backend_) backend_ = InterpretedBackend();
  return *backend_;
}

std::shared_ptr<Schedule> Session::ScheduleOf(const looptree::LoopTree& start) {
  const looptree::ProgramKey key = looptree::ProgramKeyOf(start.program());
  std::shared_ptr<Schedule>& schedule = schedules_[key];
  if (!schedule) schedule = std::make_shared<Schedule>(key, start);
  return schedule;
}

void Session::SetSchedule(const looptree::LoopTree& tree) { ScheduleOf(tree)->Set(tree); }

std::shared_ptr<Plan> Session::MakePlan(const std::vector<Node*>& nodes,
                                        const std::vector<std::vector<std::int64_t>>& shapes) {
  Lowered lowered = Lower(nodes, shapes);
  auto plan = std::make_shared<Plan>();
  std::vector<std::uint32_t> outputs;  // places, by number of segment
  // Which value the place has: a leaf's or a segment's, counted from the leaves' end for now.
  const auto holder = [&](std::uint32_t place) {
    while (nodes[place]->kind == Node::Kind::kRename ||
           nodes[place]->kind == Node::Kind::kReshape) {
      if (std::ranges::find(outputs, place) != outputs.end()) break;
      place = nodes[place]->inputs[0]->place;
    }
    return place;
  };
  const auto add_leaf = [&](std::uint32_t place) {
    if (nodes[place]->kind != Node::Kind::kLeaf) return;
    if (std::ranges::find(plan->leaves, place) != plan->leaves.end()) return;
    plan->leaves.push_back(place);
    plan->leaf_shapes.push_back(shapes[place]);
    plan->leaf_counts.push_back(CountOf(shapes[place]));
  };
  for (const LoweredSegment& segment : lowered.segments) outputs.push_back(segment.output);
  for (const LoweredSegment& segment : lowered.segments) {
    for (const std::uint32_t input : segment.inputs) add_leaf(holder(input));
  }
  add_leaf(lowered.result);
  const auto value_of = [&](std::uint32_t place) {
    place = holder(place);
    const auto output = std::ranges::find(outputs, place);
    if (output != outputs.end()) {
      return static_cast<std::uint32_t>(plan->leaves.size() + (output - outputs.begin()));
    }
    return static_cast<std::uint32_t>(std::ranges::find(plan->leaves, place) -
                                      plan->leaves.begin());
  };
  for (LoweredSegment& segment : lowered.segments) {
    Plan::Segment& made = plan->segments.emplace_back();
    made.schedule = ScheduleOf(segment.start);
    made.output_count = CountOf(shapes[segment.output]);
    for (const std::uint32_t input : segment.inputs) made.inputs.push_back(value_of(input));
  }
  plan->result = value_of(lowered.result);
  plan->shape = shapes.back();
  return plan;
}

std::vector<Node*> WithConsumers(const std::vector<Node*>& nodes, std::vector<NodePtr>& kept) {
  std::vector<Node*> roots = nodes;
  std::unordered_set<const Node*> seen(nodes.begin(), nodes.end());
  for (std::size_t i = 0; i < roots.size(); ++i) {
    for (const std::weak_ptr<Node>& weak : roots[i]->consumers) {
      NodePtr consumer = weak.lock();
      if (!consumer || !seen.insert(consumer.get()).second) continue;
      roots.push_back(consumer.get());
      kept.push_back(std::move(consumer));
    }
  }
  // Their other inputs may have consumers of their own: those do not depend on this node.
  return InOrder(roots);
}

std::shared_ptr<const Plan> Session::PlanOf(Node& root) {
  std::vector<Node*> nodes;
  InOrder(root, nodes);
  return PlanOf(root, nodes);
}

std::shared_ptr<const Plan> Session::PlanOf(Node& root, const std::vector<Node*>& nodes) {
  thread_local std::vector<std::uint64_t> words;
  words.clear();
  AppendStructure(nodes, words);
  if (const auto found = plans_.find(words); found != plans_.end()) return found->second;
  std::vector<std::uint64_t> key = words;  // evaluation below may use `words` again
  std::vector<std::vector<std::int64_t>> shapes;
  bool is_complete = true;
  {
    const ShapeSolver solver(nodes);
    for (const Node* const node : nodes) {
      shapes.push_back(solver.ShapeOf(*node));
      is_complete = is_complete && solver.Knows(*node);
    }
  }
  if (!is_complete) {
    std::vector<NodePtr> kept;
    const std::vector<Node*> all = WithConsumers(nodes, kept);
    const ShapeSolver solver(all);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!solver.Knows(*nodes[i])) solver.ThrowUnknown(*nodes[i]);
      shapes[i] = solver.ShapeOf(*nodes[i]);
      for (const std::int64_t size : shapes[i]) key.push_back(static_cast<std::uint64_t>(size));
    }
    InOrder(root);  // the places within this graph again
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
  }
  const std::shared_ptr<Plan> plan = MakePlan(nodes, shapes);
  plan->needs_consumers = !is_complete;
  if (plans_.size() >= kMostPlans) Tidy();
  plans_.emplace(std::move(key), plan);
  return plan;
}

void Session::Tidy() {
  plans_.clear();
  std::erase_if(schedules_, [](const auto& entry) {
    return entry.second.use_count() == 1 && !entry.second->is_set();
  });
}

void Session::RunSegment(const Plan::Segment& segment, const float* const* inputs, float* output) {
  // Kernels read slowly across cache lines; small inputs are worth a copy if there is much work.
  constexpr std::uint64_t kMuchFlop = 2'000'000;
  constexpr std::size_t kSmallBytes = std::size_t{1} << 20;
  constexpr std::uintptr_t kLine = 64;
  Schedule& schedule = *segment.schedule;
  const std::uint64_t flop = schedule.flop_count();
  std::vector<std::shared_ptr<Buffer>> staged;
  std::vector<const float*> pointers;
  if (flop > kMuchFlop) {
    pointers.assign(inputs, inputs + segment.inputs.size());
    const looptree::Program& program = schedule.tree().program();
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      const auto count = static_cast<std::size_t>(program.ElementCount(program.inputs[i]));
      const bool is_aligned = reinterpret_cast<std::uintptr_t>(pointers[i]) % kLine == 0;
      if (is_aligned || count * sizeof(float) > kSmallBytes) continue;
      staged.push_back(Buffer::Make(count));
      std::memcpy(staged.back()->data(), pointers[i], count * sizeof(float));
      pointers[i] = staged.back()->data();
    }
    inputs = pointers.data();
  }
  const bool is_long = schedule.run_ns() > 0 ? schedule.run_ns() > kLongRunNs : flop > kLongRunFlop;
  const std::shared_ptr<Runnable> code = schedule.SharedCode();
  if (!is_long && !schedule.wants_runs()) {
    code->Run(inputs, &output);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  if (is_long && long_run_) {
    long_run_([&] { code->Run(inputs, &output); });
  } else {
    code->Run(inputs, &output);
  }
  if (!schedule.wants_runs()) return;
  schedule.AddRun(
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
}

std::shared_ptr<Buffer> Session::Run(const Plan& plan, const float* const* leaves, float* out) {
  constexpr std::size_t kFew = 16;
  if (plan.segments.size() == 1 && plan.result == plan.leaves.size() &&
      plan.segments[0].inputs.size() <= kFew) {
    const Plan::Segment& segment = plan.segments[0];
    std::array<const float*, kFew> few;
    for (std::size_t i = 0; i < segment.inputs.size(); ++i) few[i] = leaves[segment.inputs[i]];
    std::shared_ptr<Buffer> only = out == nullptr ? Buffer::Make(segment.output_count) : nullptr;
    RunSegment(segment, few.data(), only ? only->data() : out);
    return only;
  }
  std::vector<std::shared_ptr<Buffer>> made;
  std::vector<const float*> values(leaves, leaves + plan.leaves.size());
  std::vector<const float*> inputs;
  std::shared_ptr<Buffer> result;
  for (std::size_t i = 0; i < plan.segments.size(); ++i) {
    const Plan::Segment& segment = plan.segments[i];
    inputs.clear();
    for (const std::uint32_t input : segment.inputs) inputs.push_back(values[input]);
    float* output = out;
    const bool is_result = plan.result == plan.leaves.size() + i;
    if (!is_result || out == nullptr) {
      made.push_back(Buffer::Make(segment.output_count));
      output = made.back()->data();
      if (is_result) result = made.back();
    }
    RunSegment(segment, inputs.data(), output);
    values.push_back(output);
  }
  return result;
}

std::shared_ptr<Buffer> Session::Evaluate(Node& root) {
  if (root.kind == Node::Kind::kLeaf) {
    if (root.data) return root.data;
    throw TensorError(TensorError::Kind::kTensor,
                      fmt::format("{} has no values yet: set() gives it some", Describe(root)));
  }
  if (root.kind == Node::Kind::kConstant) {
    auto values = Buffer::Make(1);
    values->data()[0] = static_cast<float>(root.value);
    return values;
  }
  const bool has_its_values =
      root.result && std::ranges::all_of(root.result_of, [](const auto& leaf) {
        return leaf.first->version == leaf.second;
      });
  if (has_its_values && !root.result_plan) return root.result;
  thread_local std::vector<Node*> nodes;
  InOrder(root, nodes);
  const std::shared_ptr<const Plan> plan = PlanOf(root, nodes);
  if (has_its_values && plan == root.result_plan) return root.result;
  std::vector<const float*> leaves;
  std::vector<std::shared_ptr<Buffer>> kept;  // while the kernel runs, anyone may set a leaf
  std::vector<std::pair<const Node*, std::uint64_t>> result_of;
  leaves.reserve(plan->leaves.size());
  kept.reserve(plan->leaves.size());
  result_of.reserve(plan->leaves.size());
  for (const std::uint32_t place : plan->leaves) {
    const Node& leaf = *nodes[place];
    if (!leaf.data) {
      throw TensorError(TensorError::Kind::kTensor,
                        fmt::format("{} has no values yet: set() gives it some", Describe(leaf)));
    }
    leaves.push_back(leaf.data->data());
    kept.push_back(leaf.data);
  }
  // Of leaves that are not read it may have the sizes.
  for (const Node* const node : nodes) {
    if (node->kind == Node::Kind::kLeaf) result_of.emplace_back(node, node->version);
  }
  std::shared_ptr<Buffer> result =
      plan->result < plan->leaves.size() ? kept[plan->result] : Run(*plan, leaves.data(), nullptr);
  root.result = result;
  root.result_of = std::move(result_of);
  root.result_shape = plan->shape;
  root.result_plan = plan->needs_consumers ? plan : nullptr;
  return result;
}

}  // namespace loopfleet::tensor
