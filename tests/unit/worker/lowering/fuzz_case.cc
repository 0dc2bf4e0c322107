#include "tests/unit/worker/lowering/fuzz_case.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

#include "common/looptree/text/text.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "tests/unit/worker/lowering/random_program.h"

namespace loopfleet::worker {
namespace {

using looptree::Action;
using nlohmann::ordered_json;

constexpr std::uint64_t kCasesOfAProgram = 16;
constexpr std::uint64_t kMostActions = 24;

}  // namespace

Action RandomAgentAction(SplitMix64& random) {
  constexpr std::int64_t kFactors[] = {2, 3, 4, 5, 7, 8, 16, 32};
  switch (random.Below(12)) {
    case 0: return looptree::Up{};
    case 1:
    case 2:
    case 3: return looptree::Down{};
    case 4: return looptree::SwapUp{};
    case 5:
    case 6: return looptree::SwapDown{};
    case 7: return looptree::Merge{};
    case 8:
      return random.Below(3) == 0 ? Action(looptree::Unroll{}) : Action(looptree::Vectorize{});
    default: return looptree::Split{kFactors[random.Below(std::size(kFactors))]};
  }
}

Action RandomSimpleAction(SplitMix64& random) {
  const Action actions[] = {looptree::ToggleMode{}, looptree::Up{}, looptree::Up{},
                            looptree::Down{}, looptree::ToggleThread{}};
  return actions[random.Below(std::size(actions))];
}

FuzzCase FuzzCases::Next() {
  if (left_ == 0) {
    left_ = kCasesOfAProgram;
    input_seed_ = random_.Next();
    ++kind_;
    const bool simple = kind_ % (kProgramKinds + 1) == kProgramKinds;
    add_size_ = simple ? 1 + random_.Below(400) : 0;
    if (!simple) program_ = RandomProgram(kind_ % (kProgramKinds + 1), random_);
  }
  --left_;
  FuzzCase fuzz{.job = {}, .input_seed = input_seed_};
  fuzz.job.on_illegal = looptree::OnIllegal::kSkip;
  std::uint64_t actions = random_.Below(kMostActions + 1);
  if (add_size_ > 0) {
    fuzz.job.source =
        looptree::BenchmarkUri{fmt::format("benchmark://loop_tool-cpu-v0/{}", add_size_)};
    for (; actions > 0; --actions) fuzz.job.actions.push_back(RandomSimpleAction(random_));
    return fuzz;
  }
  // Clients start from the plain tree; random trees have shapes that a few actions do not reach.
  const bool plain = random_.Below(3) == 0;
  const looptree::LoopTree start = plain ? PlainTree(program_) : RandomTree(program_, random_);
  fuzz.job.source = looptree::IrText{looptree::IrTextOf(start)};
  for (; actions > 0; --actions) fuzz.job.actions.push_back(RandomAgentAction(random_));
  return fuzz;
}

std::string ToLine(const FuzzCase& fuzz) {
  ordered_json line;
  if (const auto* ir = std::get_if<looptree::IrText>(&fuzz.job.source)) {
    line["ir"] = ir->text;
  } else {
    line["benchmark"] = std::get<looptree::BenchmarkUri>(fuzz.job.source).text;
  }
  line["actions"] = looptree::ActionNames(fuzz.job.actions);
  line["on_illegal"] = "skip";
  line["isa"] = fuzz.isa;
  line["threads"] = fuzz.threads;
  line["input_seed"] = fuzz.input_seed;
  return line.dump();
}

Result<FuzzCase> ParseFuzzCase(std::string_view text) {
  FuzzCase fuzz;
  fuzz.job.on_illegal = looptree::OnIllegal::kSkip;
  try {
    const auto line = nlohmann::json::parse(text);
    if (line.contains("ir")) {
      fuzz.job.source = looptree::IrText{line.at("ir").get<std::string>()};
    } else {
      fuzz.job.source = looptree::BenchmarkUri{line.at("benchmark").get<std::string>()};
    }
    const auto names = line.at("actions").get<std::vector<std::string>>();
    auto actions = looptree::ParseActions(names);
    if (!actions) return Fail(ErrorKind::kInvalid, actions.error().message);
    fuzz.job.actions = *std::move(actions);
    fuzz.isa = line.value("isa", fuzz.isa);
    fuzz.threads = line.value("threads", fuzz.threads);
    fuzz.input_seed = line.value("input_seed", fuzz.input_seed);
  } catch (const nlohmann::json::exception& error) {
    return Fail(ErrorKind::kInvalid, error.what());
  }
  return fuzz;
}

const CachedReference::Known& CachedReference::Of(const looptree::Program& program,
                                                  std::uint64_t input_seed) {
  const bool known =
      !known_.reference.outputs.empty() && input_seed == input_seed_ && program == program_;
  if (!known) {
    program_ = program;
    input_seed_ = input_seed;
    known_.inputs = SmallIntegers(program, input_seed);
    known_.reference = looptree::Evaluate(program, known_.inputs);
  }
  return known_;
}

}  // namespace loopfleet::worker
