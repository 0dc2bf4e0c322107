#include "common/wire/codec/job_codec.h"

#include "common/wire/codec/codec.h"

namespace loopfleet::wire {
namespace {

using looptree::OnIllegal;
using looptree::RuleSet;

constexpr EnumTable kRuleSets{
    "rule set", std::array{std::pair{schema::RuleSet::STRUCTURAL, RuleSet::kStructural},
                           std::pair{schema::RuleSet::LOOP_NEST, RuleSet::kLoopNest},
                           std::pair{schema::RuleSet::LOOP_NEST58, RuleSet::kLoopNest58}}};

constexpr EnumTable kOnIllegals{"on_illegal",
                                std::array{std::pair{schema::OnIllegal::REJECT, OnIllegal::kReject},
                                           std::pair{schema::OnIllegal::SKIP, OnIllegal::kSkip}}};

constexpr EnumTable kDeviceWishes{
    "device",
    std::array{std::pair{schema::DeviceRequest::BY_BENCHMARK, DeviceRequest::kByBenchmark},
               std::pair{schema::DeviceRequest::CPU, DeviceRequest::kCpu},
               std::pair{schema::DeviceRequest::CUDA, DeviceRequest::kCuda},
               std::pair{schema::DeviceRequest::ANY, DeviceRequest::kAny}}};

constexpr EnumTable kFreshnesses{
    "freshness",
    std::array{std::pair{schema::Freshness::STORED_MAY_ANSWER, Freshness::kAllowStored},
               std::pair{schema::Freshness::MEASURE_ANEW, Freshness::kMeasureAgain}}};

constexpr EnumTable kProfileLevels{
    "profile", std::array{std::pair{schema::ProfileLevel::NONE, ProfileLevel::kNone},
                          std::pair{schema::ProfileLevel::ROOTS, ProfileLevel::kRoots},
                          std::pair{schema::ProfileLevel::LOOPS, ProfileLevel::kLoops},
                          std::pair{schema::ProfileLevel::LINES, ProfileLevel::kLines}}};

using OptionalDialect = std::optional<looptree::Dialect>;
constexpr EnumTable kDialects{
    "dialect",
    std::array{std::pair{schema::Dialect::OF_BENCHMARK, OptionalDialect{}},
               std::pair{schema::Dialect::SIMPLE, OptionalDialect{looptree::Dialect::kSimple}},
               std::pair{schema::Dialect::AGENT, OptionalDialect{looptree::Dialect::kAgent}}}};

// One overload for each action: a new action does not compile until it has a union member.
struct ActionWriter {
  schema::Action::Builder builder;
  void operator()(looptree::ToggleMode) { builder.setToggleMode(); }
  void operator()(looptree::ToggleThread) { builder.setToggleThread(); }
  void operator()(looptree::IdleSplit) { builder.setIdleSplit(); }
  void operator()(looptree::Up) { builder.setUp(); }
  void operator()(looptree::Down) { builder.setDown(); }
  void operator()(looptree::SwapUp) { builder.setSwapUp(); }
  void operator()(looptree::SwapDown) { builder.setSwapDown(); }
  void operator()(looptree::Split split) { builder.setSplit(split.factor); }
  void operator()(looptree::Merge) { builder.setMerge(); }
  void operator()(looptree::Unroll) { builder.setUnroll(); }
  void operator()(looptree::Vectorize) { builder.setVectorize(); }
  void operator()(looptree::Undo) { builder.setUndo(); }
  void operator()(looptree::Dummy) { builder.setDummy(); }
  void operator()(looptree::MergeAllLoops) { builder.setMergeAll(); }
};

struct SourceWriter {
  schema::Source::Builder builder;
  void operator()(const looptree::BenchmarkUri& uri) { builder.setUri(TextOf(uri.text)); }
  void operator()(const looptree::IrText& ir) { builder.setIr(TextOf(ir.text)); }
};

std::string StringOf(capnp::Text::Reader text) { return {text.begin(), text.size()}; }

void WriteLaterFields(const JobSpec& spec, schema::JobSpec::Builder builder) {
  builder.setPriority(spec.priority);
  builder.setThreads(spec.threads);
  builder.setCache(kCacheStates.ToWire(spec.cache));
  if (!spec.labels.empty()) {
    WriteTexts(spec.labels, builder.initLabels(static_cast<unsigned>(spec.labels.size())));
  }
  if (!spec.affinity.empty()) builder.setAffinity(TextOf(spec.affinity));
  builder.setPrecision(spec.precision);
  builder.setBudgetMs(spec.budget_ms);
  builder.setCutAboveNs(spec.cut_above_ns);
  builder.setDeadlineS(spec.deadline_s);
  builder.setMaxAgeS(spec.max_age_s);
  const bool any_grade = spec.min_grade == Grade::kD;
  builder.setMinGrade(any_grade ? 0 : static_cast<std::uint8_t>(spec.min_grade) + 1);
  if (!spec.passes.empty()) {
    WriteTexts(spec.passes, builder.initPasses(static_cast<unsigned>(spec.passes.size())));
  }
  if (!spec.observe.empty()) {
    WriteTexts(spec.observe, builder.initObserve(static_cast<unsigned>(spec.observe.size())));
  }
  builder.setProfile(kProfileLevels.ToWire(spec.profile));
}

void ReadLaterFields(schema::JobSpec::Reader reader, JobSpec& spec) {
  spec.priority = reader.getPriority();
  spec.threads = reader.getThreads();
  spec.cache = kCacheStates.FromWire(reader.getCache());
  for (const auto label : reader.getLabels()) spec.labels.push_back(StringOf(label));
  spec.affinity = StringOf(reader.getAffinity());
  spec.precision = reader.getPrecision();
  spec.budget_ms = reader.getBudgetMs();
  spec.cut_above_ns = reader.getCutAboveNs();
  spec.deadline_s = reader.getDeadlineS();
  spec.max_age_s = reader.getMaxAgeS();
  const std::uint8_t grade = reader.getMinGrade();
  if (grade > kAllGrades.size()) RefuseMalformed(fmt::format("minGrade is {}", grade));
  spec.min_grade = grade == 0 ? Grade::kD : kAllGrades[grade - 1];
  for (const auto pass : reader.getPasses()) spec.passes.push_back(StringOf(pass));
  for (const auto name : reader.getObserve()) spec.observe.push_back(StringOf(name));
  spec.profile = kProfileLevels.FromWire(reader.getProfile());
}

// The actions without a parameter, by union member. A table, because a page has tens of thousands.
constexpr auto kPlainActions = [] {
  std::array<looptree::Action, schema::Action::MERGE_ALL + 1> table{};
  table[schema::Action::TOGGLE_MODE] = looptree::ToggleMode{};
  table[schema::Action::TOGGLE_THREAD] = looptree::ToggleThread{};
  table[schema::Action::IDLE_SPLIT] = looptree::IdleSplit{};
  table[schema::Action::UP] = looptree::Up{};
  table[schema::Action::DOWN] = looptree::Down{};
  table[schema::Action::SWAP_UP] = looptree::SwapUp{};
  table[schema::Action::SWAP_DOWN] = looptree::SwapDown{};
  table[schema::Action::MERGE] = looptree::Merge{};
  table[schema::Action::UNROLL] = looptree::Unroll{};
  table[schema::Action::VECTORIZE] = looptree::Vectorize{};
  table[schema::Action::UNDO] = looptree::Undo{};
  table[schema::Action::DUMMY] = looptree::Dummy{};
  table[schema::Action::MERGE_ALL] = looptree::MergeAllLoops{};
  return table;
}();

[[noreturn]] void RefuseAction(std::size_t which, std::uint32_t index) {
  if (which == schema::Action::NONE) RefuseMalformed(fmt::format("action {} is empty", index));
  throw Refusal{
      {.code = FailureCode::kUnsupported,
       .message = fmt::format("action {} is of kind {}, not known to this version", index, which),
       .action_index = index}};
}

}  // namespace

void WriteActions(std::span<const looptree::Action> actions, ActionList::Builder list,
                  std::uint32_t first) {
  for (const looptree::Action& action : actions) std::visit(ActionWriter{list[first++]}, action);
}

void ReadActions(ActionList::Reader list, std::uint32_t first, std::uint32_t count,
                 std::vector<looptree::Action>& actions) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto reader = list[first + i];
    const auto which = static_cast<std::size_t>(reader.which());
    if (which == schema::Action::SPLIT) {
      actions.emplace_back(looptree::Split{reader.getSplit()});
    } else if (which < kPlainActions.size() && which != schema::Action::NONE) [[likely]] {
      actions.push_back(kPlainActions[which]);
    } else {
      RefuseAction(which, i);
    }
  }
}

void WriteSource(const looptree::Source& source, schema::Source::Builder builder) {
  std::visit(SourceWriter{builder}, source);
}

looptree::Source ReadSource(schema::Source::Reader reader) {
  switch (reader.which()) {
    case schema::Source::NONE: RefuseMalformed("a job has no benchmark");
    case schema::Source::URI: return looptree::BenchmarkUri{StringOf(reader.getUri())};
    case schema::Source::IR: return looptree::IrText{StringOf(reader.getIr())};
  }
  RefuseUnsupported(fmt::format("benchmark kind {} is not known to this version",
                                static_cast<std::uint16_t>(reader.which())));
}

void WriteJobSpec(const JobSpec& spec, schema::JobSpec::Builder builder) {
  WriteSource(spec.source, builder.initSource());
  if (!spec.actions.empty()) {
    WriteActions(spec.actions, builder.initActions(static_cast<unsigned>(spec.actions.size())), 0);
  }
  builder.setRules(kRuleSets.ToWire(spec.rules));
  builder.setOnIllegal(kOnIllegals.ToWire(spec.on_illegal));
  builder.setMergeAllFirst(spec.merge_all_first);
  builder.setDialect(kDialects.ToWire(spec.dialect));
  builder.setDevice(kDeviceWishes.ToWire(spec.device));
  builder.setFreshness(kFreshnesses.ToWire(spec.freshness));
  if (!spec.tag.empty()) builder.setTag(TextOf(spec.tag));
  WriteLaterFields(spec, builder);
}

JobSpec ReadJobSpec(schema::JobSpec::Reader reader) {
  JobSpec spec;
  spec.source = ReadSource(reader.getSource());
  const auto actions = reader.getActions();
  spec.actions.reserve(actions.size());
  ReadActions(actions, 0, actions.size(), spec.actions);
  spec.rules = kRuleSets.FromWire(reader.getRules());
  spec.on_illegal = kOnIllegals.FromWire(reader.getOnIllegal());
  spec.merge_all_first = reader.getMergeAllFirst();
  spec.dialect = kDialects.FromWire(reader.getDialect());
  spec.device = kDeviceWishes.FromWire(reader.getDevice());
  spec.freshness = kFreshnesses.FromWire(reader.getFreshness());
  spec.tag = StringOf(reader.getTag());
  ReadLaterFields(reader, spec);
  if (auto refusal = OutOfBounds(spec)) throw Refusal{*std::move(refusal)};
  return spec;
}

void WriteJobId(const JobId& id, schema::JobId::Builder builder) {
  builder.setBatch(id.batch.value);
  builder.setIndex(id.index);
}

JobId ReadJobId(schema::JobId::Reader reader) {
  return {.batch = BatchId{reader.getBatch()}, .index = reader.getIndex()};
}

}  // namespace loopfleet::wire
