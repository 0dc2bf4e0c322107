#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/job_line.h"
#include "client/python/bindings.h"
#include "client/python/conversion.h"
#include "client/python/job_binding.h"
#include "client/replay/observation.h"
#include "client/replay/walk_start.h"
#include "common/base/counted.h"
#include "common/base/enum_names.h"
#include "common/base/random.h"
#include "common/base/suggestion.h"
#include "common/job/task.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/features/features.h"
#include "common/looptree/program/limits.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using client::ActionSpace;
using looptree::Action;
using looptree::AgentWalk;
using looptree::Benchmark;
using looptree::FeatureLayout;
using looptree::LoopTree;
using looptree::RuleSet;
using looptree::SimpleWalk;

template <class T>
T Must(looptree::Checked<T> checked) {
  if (!checked) Raise(ToFailure(checked.error()));
  if constexpr (!std::is_void_v<T>) return *std::move(checked);
}

RuleSet RulesOf(const std::string& name, FeatureLayout features) {
  if (name == "structural") return RuleSet::kStructural;
  if (name == "loop_nest") {
    // The older features imply the rules of their version, as in `loopfleet replay`.
    return features == FeatureLayout::kAgent58 ? RuleSet::kLoopNest58 : RuleSet::kLoopNest;
  }
  if (name == "loop_nest_58") return RuleSet::kLoopNest58;
  Raise({.code = FailureCode::kMalformed,
         .message =
             fmt::format("'rules' must be structural, loop_nest or loop_nest_58, not '{}'", name)});
}

FeatureLayout FeaturesOf(const std::string& name) {
  if (name == "agent20") return FeatureLayout::kAgent20;
  if (name == "agent58") return FeatureLayout::kAgent58;
  Raise({.code = FailureCode::kMalformed,
         .message = fmt::format("'features' must be agent20 or agent58, not '{}'", name)});
}

// The constant part of a walk, shared by its copies.
struct Setting {
  looptree::Source source;
  Benchmark benchmark;
  ActionSpace space;
  client::ObservationOptions look;
  RuleSet rules = RuleSet::kStructural;
  bool merge_all_first = false;
  looptree::TreeRef start_cursor = 0;
};

class Walk {
 public:
  enum class Effect : std::uint8_t { kNone, kCursor, kTree };

  explicit Walk(std::shared_ptr<const Setting> setting)
      : setting_(std::move(setting)), state_(Start()) {}

  // Illegal actions change nothing, as in the original.
  bool Apply(const Action& action) {
    if (auto* simple = std::get_if<SimpleWalk>(&state_)) {
      Must(simple->Apply(action));
      history_.push_back(action);
      return true;
    }
    Must(looptree::CheckDialect(action, looptree::Dialect::kAgent));
    return std::get<AgentWalk>(state_).Apply(action).has_value();
  }

  const Action& ActionAt(std::int64_t index) const {
    if (index < 0 || std::cmp_greater_equal(index, setting_->space.actions.size())) {
      Raise({.code = FailureCode::kInvalidAction,
             .message =
                 fmt::format("action {} is not in the action space, which has {}; Walk(..., "
                             "action_space=[...]) chooses one",
                             index, Counted(setting_->space.actions.size(), "action", "actions"))});
    }
    return setting_->space.actions[static_cast<std::size_t>(index)];
  }

  void FillMask(std::int8_t* mask) const {
    const auto* agent = std::get_if<AgentWalk>(&state_);
    for (const Action& action : setting_->space.actions) {
      *mask++ = agent == nullptr || agent->IsLegal(action) ? 1 : 0;
    }
  }
  std::size_t action_count() const { return setting_->space.actions.size(); }

  std::span<const Action> history() const {
    const auto* agent = std::get_if<AgentWalk>(&state_);
    return agent == nullptr ? std::span<const Action>(history_) : agent->history();
  }

  LoopTree Tree() const {
    if (const auto* agent = std::get_if<AgentWalk>(&state_)) return agent->tree();
    return Must(std::get<SimpleWalk>(state_).Tree());
  }

  looptree::TreeRef cursor() const {
    if (const auto* agent = std::get_if<AgentWalk>(&state_)) return agent->cursor();
    return static_cast<looptree::TreeRef>(std::get<SimpleWalk>(state_).ActionState()[0]);
  }

  // Whether the cursor (simple: mode and selected loop) is the same. Cheaper than comparing text.
  bool SameCursor(const Walk& other) const {
    const auto* simple = std::get_if<SimpleWalk>(&state_);
    if (simple == nullptr) return cursor() == other.cursor();
    const auto& that = std::get<SimpleWalk>(other.state_);
    return simple->mode() == that.mode() && simple->ActionState() == that.ActionState();
  }

  nb::object Observe(const std::string& name, std::optional<std::size_t> max_loops) const {
    const auto rows = client::ChooseObservations(std::vector{name}, setting_->benchmark.dialect);
    if (!rows) Raise(rows.error());
    client::ObservationOptions look = setting_->look;
    look.max_loops = max_loops;
    const LoopTree tree = Tree();
    auto value = rows->front()->value(SceneOf(tree, look));
    if (!value) Raise(value.error());
    return ToPython(*value);
  }

  // Rows beyond `max_loops` are dropped, because an observation space has a fixed shape.
  void FillLoopsTensor(float* numbers, std::size_t max_loops) const {
    const std::size_t width = looptree::RowWidth(setting_->look.features);
    const auto rows = looptree::LoopsTensor(Tree(), cursor(), setting_->look.features);
    float* end = numbers + max_loops * width;
    for (std::size_t i = 0; i < std::min(rows.size(), max_loops); ++i) {
      for (const double value : rows[i]) *numbers++ = static_cast<float>(value);
    }
    std::fill(numbers, end, 0.0F);
  }

  void FillActionState(std::int64_t* numbers) const {
    const auto* simple = std::get_if<SimpleWalk>(&state_);
    if (simple == nullptr) {
      Raise({.code = FailureCode::kMalformed, .message = "action_state belongs to dialect simple"});
    }
    std::ranges::copy(simple->ActionState(), numbers);
  }

  const Setting& setting() const { return *setting_; }
  const std::shared_ptr<const Setting>& shared_setting() const { return setting_; }

 private:
  std::variant<SimpleWalk, AgentWalk> Start() const {
    if (setting_->benchmark.dialect == looptree::Dialect::kSimple) {
      if (setting_->start_cursor != 0) {
        Raise(
            {.code = FailureCode::kMalformed, .message = "start_cursor belongs to dialect agent"});
      }
      return SimpleWalk(setting_->benchmark);
    }
    auto walk =
        client::StartWalk(setting_->benchmark, {.rules = setting_->rules,
                                                .merge_all_first = setting_->merge_all_first,
                                                .cursor = setting_->start_cursor});
    if (!walk) Raise(walk.error());
    return *std::move(walk);
  }

  client::Scene SceneOf(const LoopTree& tree, const client::ObservationOptions& look) const {
    return {.benchmark = setting_->benchmark,
            .tree = tree,
            .cursor = cursor(),
            .simple = std::get_if<SimpleWalk>(&state_),
            .agent = std::get_if<AgentWalk>(&state_),
            .space = &setting_->space,
            .options = look};
  }

  std::shared_ptr<const Setting> setting_;
  std::variant<SimpleWalk, AgentWalk> state_;
  std::vector<Action> history_;  // dialect simple; AgentWalk keeps its own
};

void MakeWalk(Walk* place, std::string benchmark, std::string ir,
              std::vector<std::string> action_space, const std::string& rules,
              const std::string& features, std::optional<std::size_t> stride_buckets,
              bool merge_all_first, looptree::TreeRef start_cursor) {
  auto setting = std::make_shared<Setting>();
  setting->source = SourceOf(std::move(benchmark), std::move(ir));
  setting->benchmark = Must(looptree::OpenBenchmark(setting->source));
  setting->look.features = FeaturesOf(features);
  setting->look.stride_buckets = stride_buckets;
  setting->rules = RulesOf(rules, setting->look.features);
  setting->merge_all_first = merge_all_first;
  setting->start_cursor = start_cursor;
  setting->space.actions = Must(looptree::ParseActions(action_space));
  for (const Action& action : setting->space.actions) {
    Must(looptree::CheckDialect(action, setting->benchmark.dialect));
  }
  setting->space.names = std::move(action_space);
  new (place) Walk(std::move(setting));
}

Walk::Effect StepOne(Walk& walk, const Action& action) {
  const Walk before = walk;
  if (!walk.Apply(action)) return Walk::Effect::kNone;
  const LoopTree old_tree = before.Tree();
  const LoopTree new_tree = walk.Tree();
  if (old_tree.schedule() != new_tree.schedule()) return Walk::Effect::kTree;
  return walk.SameCursor(before) ? Walk::Effect::kNone : Walk::Effect::kCursor;
}

// The job that measures the walk's current tree, with the given fields.
Job JobOf(const Walk& walk, const std::string& affinity, bool fresh, std::uint32_t threads,
          double precision, double budget_ms, const std::string& device) {
  const Setting& setting = walk.setting();
  Job job;
  JobSpec& spec = job.spec;
  const bool is_too_long = setting.benchmark.dialect == looptree::Dialect::kAgent &&
                           walk.history().size() > looptree::Limits{}.actions;
  if (setting.start_cursor != 0 || is_too_long) {
    // A job starts at cursor 0 and has so many actions at most: send the tree itself.
    spec.source = looptree::IrText{looptree::IrTextOf(walk.Tree())};
  } else {
    spec.source = setting.source;
    spec.actions.assign(walk.history().begin(), walk.history().end());
    spec.rules = setting.rules;
    spec.merge_all_first = setting.merge_all_first;
  }
  spec.affinity = affinity;
  spec.freshness = fresh ? Freshness::kMeasureAgain : Freshness::kAllowStored;
  spec.threads = threads;
  spec.precision = precision;
  spec.budget_ms = budget_ms;
  if (!device.empty()) {
    const auto wanted = ValueNamed<DeviceRequest>(device);
    if (!wanted) {
      Raise({.code = FailureCode::kMalformed,
             .message = fmt::format("'device' must be {}, not '{}'",
                                    fmt::join(AllNames<DeviceRequest>(), " or "), device)});
    }
    spec.device = *wanted;
  }
  return job;
}

template <class T>
using Rows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Steps each walk of a vector environment and writes masks and loops tensors into the caller's
// arrays. An action < 0 only observes the walk. Releases the interpreter's lock.
nb::object StepMany(
    const std::vector<Walk*>& walks,
    const nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& actions,
    const Rows<float>& loops_tensors, const Rows<std::int8_t>& masks) {
  if (actions.shape(0) != walks.size() || masks.shape(0) != walks.size() ||
      loops_tensors.shape(0) != walks.size()) {
    throw nb::value_error("actions, loops_tensors and masks need one row for each walk");
  }
  std::vector<std::uint8_t> effects(walks.size(), 0);
  {
    nb::gil_scoped_release unlocked;
    for (std::size_t i = 0; i < walks.size(); ++i) {
      Walk& walk = *walks[i];
      const std::size_t width = looptree::RowWidth(walk.setting().look.features);
      if (masks.shape(1) != walk.action_count() || loops_tensors.shape(1) % width != 0) {
        throw nb::value_error("masks or loops_tensors have rows of another length");
      }
      const std::int64_t chosen = actions.data()[i];
      if (chosen >= 0) {
        effects[i] = static_cast<std::uint8_t>(StepOne(walk, walk.ActionAt(chosen)));
      }
      walk.FillMask(masks.data() + i * masks.shape(1));
      walk.FillLoopsTensor(loops_tensors.data() + i * loops_tensors.shape(1),
                           loops_tensors.shape(1) / width);
    }
  }
  return nb::cast(ToArray(std::move(effects)));
}

void BindDatasets(nb::module_& module) {
  module.def(
      "datasets",
      [] {
        nb::list list;
        for (const looptree::Dataset& dataset : looptree::Datasets()) {
          list.append(nb::make_tuple(std::string(dataset.prefix), std::string(dataset.description),
                                     dataset.size, std::string(dataset.example)));
        }
        return list;
      },
      "(prefix, description, size, example) of each; size 0 cannot be counted.");
  module.def(
      "dataset_member",
      [](const std::string& name, std::uint64_t index) {
        const looptree::Dataset* dataset = Must(looptree::FindDataset(name));
        if (index >= dataset->size) throw nb::index_error("beyond the dataset's size");
        return looptree::DatasetMember(*dataset, index);
      },
      "name"_a, "index"_a);
  module.def(
      "random_benchmark",
      [](const std::vector<std::string>& names, std::uint64_t seed) {
        std::vector<looptree::Dataset> chosen;
        for (const std::string& name : names) {
          chosen.push_back(*Must(looptree::FindDataset(name)));
          if (chosen.back().size == 0) {
            Raise(
                {.code = FailureCode::kInvalidBenchmark,
                 .message = fmt::format("{} cannot be counted: name one of its members, such as {}",
                                        name, chosen.back().example)});
          }
        }
        SplitMix64 random(seed);
        return looptree::RandomBenchmark(
            chosen.empty() ? looptree::Datasets() : std::span<const looptree::Dataset>(chosen),
            random);
      },
      "names"_a, "seed"_a);
  module.def(
      "observations",
      [](const std::string& dialect) {
        nb::list list;
        for (const client::Observation& row : client::Observations()) {
          const bool in =
              row.In(dialect == "simple" ? looptree::Dialect::kSimple : looptree::Dialect::kAgent);
          if (in) {
            list.append(nb::make_tuple(std::string(row.name), std::string(row.type),
                                       std::string(row.description)));
          }
        }
        return list;
      },
      "dialect"_a);
  module.def("counted", &Counted, "count"_a, "one"_a, "many"_a,
             "\"1 job\", \"2,000 jobs\": a count with its noun.");
  module.def("full_uri", &client::FullUri, "benchmark"_a,
             "A benchmark's URI, also of a name without its scheme, such as mm-v0/mm64_64_64; "
             "anything else "
             "unchanged.");
  module.def(
      "kind_of",
      [](const std::string& benchmark) {
        return EnumName(TaskOf(looptree::BenchmarkUri{benchmark}).kind);
      },
      "benchmark"_a,
      "The kind of the jobs of a benchmark URI: \"loop_schedule\", \"probe\" or \"passes\".");
  module.def(
      "nearest",
      [](const std::string& word, const std::vector<std::string>& words) {
        const std::vector<std::string_view> views(words.begin(), words.end());
        return NearestSuffix(word, views);
      },
      "word"_a, "words"_a, "\"; nearest: X\", or nothing.");
}

}  // namespace

void BindWalks(nb::module_& module) {
  module.attr("MOST_ACTIONS") = looptree::Limits{}.actions;
  nb::class_<Walk>(module, "Walk",
                   "A benchmark, the actions so far, and the tree they lead to. Copies share what "
                   "they can.")
      .def("__init__", &MakeWalk, "benchmark"_a = "", "ir"_a = "",
           "action_space"_a = std::vector<std::string>{}, "rules"_a = "structural",
           "features"_a = "agent20", "stride_buckets"_a = nb::none(), "merge_all_first"_a = false,
           "start_cursor"_a = 0)
      .def("copy", [](const Walk& walk) { return Walk(walk); })
      .def(
          "restart", [](Walk& walk) { walk = Walk(walk.shared_setting()); },
          "Back to the start of the same benchmark.")
      .def(
          "step",
          [](Walk& walk, std::int64_t action) {
            return static_cast<int>(StepOne(walk, walk.ActionAt(action)));
          },
          "action"_a,
          "Applies one action of the space. 0: nothing changed (it may be illegal here), 1: only "
          "the cursor or mode did, 2: the tree did.")
      .def(
          "apply",
          [](Walk& walk, const std::string& name) {
            return walk.Apply(Must(looptree::ParseAction(name)));
          },
          "name"_a, "Any action by name; False if it is illegal here.")
      .def(
          "mask",
          [](const Walk& walk) {
            std::vector<std::int8_t> mask(walk.action_count());
            walk.FillMask(mask.data());
            return ToArray(std::move(mask));
          },
          "int8, 1 for each action of the space that is legal here.")
      .def("observe", &Walk::Observe, "name"_a, "max_loops"_a = nb::none())
      .def(
          "loops_tensor",
          [](const Walk& walk, std::size_t max_loops) {
            const std::size_t width = looptree::RowWidth(walk.setting().look.features);
            std::vector<float> numbers(max_loops * width);
            walk.FillLoopsTensor(numbers.data(), max_loops);
            return ToArray(std::move(numbers));
          },
          "max_loops"_a)
      .def("action_state",
           [](const Walk& walk) {
             std::vector<std::int64_t> numbers(3);
             walk.FillActionState(numbers.data());
             return ToArray(std::move(numbers));
           })
      .def_prop_ro(
          "dialect",
          [](const Walk& walk) { return std::string(EnumName(walk.setting().benchmark.dialect)); })
      .def_prop_ro(
          "history", [](const Walk& walk) { return looptree::ActionNames(walk.history()); },
          "Names of what was applied and not undone.")
      .def_prop_ro("action_space", [](const Walk& walk) { return walk.setting().space.names; })
      .def_prop_ro("cursor", [](const Walk& walk) { return walk.cursor(); })
      .def_prop_ro("tree_key",
                   [](const Walk& walk) {
                     const looptree::TreeKey key = looptree::KeyOf(walk.Tree());
                     return nb::bytes(key.bytes.data(), key.bytes.size());
                   })
      .def_prop_ro(
          "canonical_form", [](const Walk& walk) { return looptree::CanonicalForm(walk.Tree()); },
          "What tree_key is a hash of: the program down to its line \"out ...\", then the loops.")
      .def_prop_ro("flop_count",
                   [](const Walk& walk) { return looptree::FlopCount(walk.Tree().program()); })
      .def("job", &JobOf, "affinity"_a = "", "fresh"_a = false, "threads"_a = 1,
           "precision"_a = 0.0, "budget_ms"_a = 0.0, "device"_a = "");
  module.def("step_many", &StepMany, "walks"_a, "actions"_a, "loops_tensors"_a, "masks"_a,
             "One step of each walk; masks and tensors are written in place. Gives the effects.");
  BindDatasets(module);
}

}  // namespace loopfleet::python
