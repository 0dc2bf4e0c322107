#include "client/cli/commands/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/exit_code.h"
#include "client/cli/text/line_reader.h"
#include "client/job_line.h"
#include "client/replay/observation.h"
#include "client/replay/replay_request.h"
#include "client/replay/walk_start.h"
#include "common/base/result.h"

namespace loopfleet::client {
namespace {

using looptree::Action;
using looptree::AgentWalk;
using looptree::Benchmark;
using looptree::Dialect;
using looptree::SimpleWalk;
using looptree::TreeRef;

template <class T>
using Parsed = std::expected<T, Failure>;
using Chosen = std::vector<const Observation*>;

// Bounds for all steps of one line: bytes of output, and tree nodes examined for legal actions
// (some 10 ns each).
constexpr std::size_t kMaxStepBytes = 16 << 20;
constexpr std::size_t kMaxLegalityNodes = 1'000'000;

std::unexpected<Failure> Malformed(std::string message) {
  return std::unexpected(Failure{.code = FailureCode::kMalformed, .message = std::move(message)});
}

Parsed<void> AddObserved(const Chosen& chosen, const Scene& scene, Json& out) {
  for (const Observation* row : chosen) {
    LF_TRY(out[std::string(row->name)], row->value(scene));
  }
  return {};
}

Scene SceneOf(const ReplayRequest& request, const Benchmark& benchmark, const SimpleWalk& walk,
              const looptree::LoopTree& tree) {
  return {.benchmark = benchmark,
          .tree = tree,
          .cursor = static_cast<TreeRef>(walk.ActionState()[0]),
          .simple = &walk,
          .options = request.look};
}

Scene SceneOf(const ReplayRequest& request, const Benchmark& benchmark, const AgentWalk& walk) {
  return {.benchmark = benchmark,
          .tree = walk.tree(),
          .cursor = walk.cursor(),
          .agent = &walk,
          .space = &request.action_space,
          .options = request.look};
}

// The steps of one reply as text: JSON values would take several times the memory.
class Steps {
 public:
  // Called before the legal actions of a step are determined.
  Parsed<void> SpendOnLegality(const AgentWalk& walk, const ActionSpace& space) {
    legality_nodes_ += walk.tree().nodes().size() * space.actions.size();
    if (legality_nodes_ <= kMaxLegalityNodes) return {};
    return std::unexpected(Failure{
        .code = FailureCode::kLimitActions,
        .message =
            fmt::format("every step with an action space of {} on a tree of {} nodes; at "
                        "most {} steps are allowed with it",
                        space.actions.size(), walk.tree().nodes().size(),
                        kMaxLegalityNodes / (space.actions.size() * walk.tree().nodes().size()))});
  }
  Parsed<void> Add(const Json& step) {
    texts_.push_back(Dump(step));
    bytes_ += texts_.back().size() + 1;
    if (bytes_ > kMaxStepBytes) {
      return std::unexpected(Failure{
          .code = FailureCode::kLimitActions,
          .message = fmt::format("what every step shows has more than {} bytes", kMaxStepBytes)});
    }
    return {};
  }
  std::span<const std::string> texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::size_t bytes_ = 0;
  std::size_t legality_nodes_ = 0;
};

// One line of the output.
struct Answer {
  Json head;                   // an object
  std::optional<Steps> steps;  // the last field
};

// Rejects actions of the other dialect.
Parsed<void> CheckActions(const std::vector<Action>& actions, Dialect dialect) {
  for (std::size_t i = 0; i < actions.size(); ++i) {
    auto checked = looptree::CheckDialect(actions[i], dialect);
    if (checked) continue;
    checked.error().action_index = static_cast<std::uint32_t>(i);
    return std::unexpected(ToFailure(checked.error()));
  }
  return {};
}

// The observations of every step: kAlways as far as the dialect has them, and those requested by
// name.
Chosen StepObservations(const ReplayRequest& request, const Chosen& chosen, Dialect dialect) {
  constexpr std::array<std::string_view, 3> kAlways = {"loop_tree", "cursor", "legal_actions"};
  Chosen shown;
  for (const Observation& row : Observations()) {
    const bool always = row.In(dialect) && std::ranges::find(kAlways, row.name) != kAlways.end();
    const bool asked = request.observations && std::ranges::find(chosen, &row) != chosen.end();
    if (always || asked) shown.push_back(&row);
  }
  return shown;
}

Parsed<Answer> ReplaySimple(const ReplayRequest& request, const Benchmark& benchmark,
                            const Chosen& chosen) {
  SimpleWalk walk(benchmark);
  const Chosen shown = StepObservations(request, chosen, Dialect::kSimple);
  Json states = Json::array();
  Steps steps;
  for (const Action& action : request.actions) {
    LF_TRY_VOID(Lift(walk.Apply(action)));
    if (!request.every_step) continue;
    states.push_back(walk.ActionState());
    Json step = {{"action", looptree::ActionName(action)}, {"legal", true}};
    LF_TRY(const auto tree, Lift(walk.Tree()));
    LF_TRY_VOID(AddObserved(shown, SceneOf(request, benchmark, walk, tree), step));
    LF_TRY_VOID(steps.Add(step));
  }
  LF_TRY(const auto tree, Lift(walk.Tree()));
  Json out = Json::object();
  LF_TRY_VOID(AddObserved(chosen, SceneOf(request, benchmark, walk, tree), out));
  if (!request.every_step) return Answer{.head = std::move(out)};
  out["action_states"] = std::move(states);
  return Answer{.head = std::move(out), .steps = std::move(steps)};
}

Parsed<Answer> ReplayAgent(const ReplayRequest& request, const Benchmark& benchmark,
                           const Chosen& chosen) {
  for (std::size_t i = 0; i < request.action_space.actions.size(); ++i) {
    const auto checked = looptree::CheckDialect(request.action_space.actions[i], Dialect::kAgent);
    if (!checked) {
      return Malformed(fmt::format("\"action_space\"[{}]: {}", i, checked.error().message));
    }
  }
  LF_TRY(AgentWalk walk, StartWalk(benchmark, {.rules = request.rules,
                                               .merge_all_first = request.merge_all_first,
                                               .cursor = request.start_cursor}));
  const Chosen shown = StepObservations(request, chosen, Dialect::kAgent);
  Steps steps;
  looptree::WalkBudget budget({});
  for (const Action& action : request.actions) {
    LF_TRY_VOID(Lift(budget.Spend(walk, action)));
    const bool legal = walk.Apply(action).has_value();
    if (!request.every_step) continue;
    LF_TRY_VOID(steps.SpendOnLegality(walk, request.action_space));
    Json step = {{"action", looptree::ActionName(action)}, {"legal", legal}};
    LF_TRY_VOID(AddObserved(shown, SceneOf(request, benchmark, walk), step));
    LF_TRY_VOID(steps.Add(step));
  }
  Json out = Json::object();
  LF_TRY_VOID(AddObserved(chosen, SceneOf(request, benchmark, walk), out));
  if (!request.every_step) return Answer{.head = std::move(out)};
  return Answer{.head = std::move(out), .steps = std::move(steps)};
}

Parsed<Answer> ReplayLine(const std::string& text) {
  LF_TRY(const ReplayRequest request, ParseReplayRequest(text));
  LF_TRY(const Benchmark benchmark, Lift(looptree::OpenBenchmark(request.source)));
  LF_TRY_VOID(CheckActions(request.actions, benchmark.dialect));
  LF_TRY(const Chosen chosen, ChooseObservations(request.observations, benchmark.dialect));
  if (benchmark.dialect == Dialect::kSimple) return ReplaySimple(request, benchmark, chosen);
  return ReplayAgent(request, benchmark, chosen);
}

Json ErrorOf(const Failure& failure) {
  Json error{{"code", InfoOf(failure.code).name}, {"message", failure.message}};
  error["action_index"] = failure.action_index ? Json(*failure.action_index) : Json(nullptr);
  return Json{{"error", std::move(error)}};
}

void Write(const Answer& answer, std::ostream& out) {
  std::string head = Dump(answer.head);  // error messages may quote bytes that are not UTF-8
  if (!answer.steps) {
    out << head << std::endl;
    return;
  }
  head.pop_back();  // its closing brace
  out << head << (answer.head.empty() ? "" : ",") << "\"steps\":[";
  bool first = true;
  for (const std::string& step : answer.steps->texts()) {
    if (!std::exchange(first, false)) out << ',';
    out << step;
  }
  out << "]}" << std::endl;
}

}  // namespace

int RunReplay(std::istream& in, std::ostream& out) {
  int exit_code = kExitOk;
  LineReader reader(in, kMaxLineBytes);
  while (const auto line = reader.Next()) {
    if (line->blank) continue;
    Parsed<Answer> answer;
    if (line->text.size() > kMaxLineBytes) {
      answer =
          Malformed(fmt::format("line {} has more than {} bytes", line->number, kMaxLineBytes));
    } else {
      answer = ReplayLine(line->text);
    }
    if (!answer) {
      exit_code = kExitFailed;
      answer = Answer{.head = ErrorOf(answer.error())};
    }
    Write(*answer, out);
    if (!out) return kExitFailed;  // the reader has gone
  }
  if (!reader.failure().empty()) {
    fmt::print(stderr, "loopfleet: the input cannot be read: {}\n", reader.failure());
    exit_code = kExitFailed;
  }
  return exit_code;
}

}  // namespace loopfleet::client
