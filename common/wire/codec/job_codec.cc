#include "common/wire/codec/job_codec.h"

#include "common/job/job_fields.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::wire {
namespace {

static_assert(IsEnumerant(schema::RuleSet::STRUCTURAL, looptree::RuleSet::kStructural) &&
              IsEnumerant(schema::RuleSet::LOOP_NEST, looptree::RuleSet::kLoopNest) &&
              IsEnumerant(schema::RuleSet::LOOP_NEST58, looptree::RuleSet::kLoopNest58));
static_assert(IsEnumerant(schema::OnIllegal::REJECT, looptree::OnIllegal::kReject) &&
              IsEnumerant(schema::OnIllegal::SKIP, looptree::OnIllegal::kSkip));
static_assert(IsEnumerant(schema::DeviceRequest::BY_BENCHMARK, DeviceRequest::kByBenchmark) &&
              IsEnumerant(schema::DeviceRequest::CPU, DeviceRequest::kCpu) &&
              IsEnumerant(schema::DeviceRequest::CUDA, DeviceRequest::kCuda) &&
              IsEnumerant(schema::DeviceRequest::ANY, DeviceRequest::kAny));
static_assert(IsEnumerant(schema::Freshness::STORED_MAY_ANSWER, Freshness::kAllowStored) &&
              IsEnumerant(schema::Freshness::MEASURE_ANEW, Freshness::kMeasureAgain));
static_assert(IsEnumerant(schema::CacheState::WARM, CacheState::kWarm) &&
              IsEnumerant(schema::CacheState::COLD, CacheState::kCold));
static_assert(IsEnumerant(schema::ProfileLevel::NONE, ProfileLevel::kNone) &&
              IsEnumerant(schema::ProfileLevel::ROOTS, ProfileLevel::kRoots) &&
              IsEnumerant(schema::ProfileLevel::LOOPS, ProfileLevel::kLoops) &&
              IsEnumerant(schema::ProfileLevel::LINES, ProfileLevel::kLines));
// 0 is the benchmark's own.
static_assert(static_cast<int>(schema::Dialect::SIMPLE) ==
                  static_cast<int>(looptree::Dialect::kSimple) + 1 &&
              static_cast<int>(schema::Dialect::AGENT) ==
                  static_cast<int>(looptree::Dialect::kAgent) + 1);

using Reader = schema::JobSpec::Reader;
using Builder = schema::JobSpec::Builder;

struct Places
    : Place<&JobSpec::rules, &Reader::getRules, &Builder::setRules>,
      Place<&JobSpec::on_illegal, &Reader::getOnIllegal, &Builder::setOnIllegal>,
      Place<&JobSpec::merge_all_first, &Reader::getMergeAllFirst, &Builder::setMergeAllFirst>,
      Place<&JobSpec::dialect, &Reader::getDialect, &Builder::setDialect>,
      Place<&JobSpec::device, &Reader::getDevice, &Builder::setDevice>,
      Place<&JobSpec::freshness, &Reader::getFreshness, &Builder::setFreshness>,
      Place<&JobSpec::tag, &Reader::getTag, &Builder::setTag>,
      Place<&JobSpec::priority, &Reader::getPriority, &Builder::setPriority>,
      Place<&JobSpec::threads, &Reader::getThreads, &Builder::setThreads>,
      Place<&JobSpec::cache, &Reader::getCache, &Builder::setCache>,
      Place<&JobSpec::labels, &Reader::getLabels, &Builder::initLabels>,
      Place<&JobSpec::affinity, &Reader::getAffinity, &Builder::setAffinity>,
      Place<&JobSpec::precision, &Reader::getPrecision, &Builder::setPrecision>,
      Place<&JobSpec::budget_ms, &Reader::getBudgetMs, &Builder::setBudgetMs>,
      Place<&JobSpec::cut_above_ns, &Reader::getCutAboveNs, &Builder::setCutAboveNs>,
      Place<&JobSpec::deadline_s, &Reader::getDeadlineS, &Builder::setDeadlineS>,
      Place<&JobSpec::max_age_s, &Reader::getMaxAgeS, &Builder::setMaxAgeS>,
      Place<&JobSpec::min_grade, &Reader::getMinGrade, &Builder::setMinGrade>,
      Place<&JobSpec::passes, &Reader::getPasses, &Builder::initPasses>,
      Place<&JobSpec::observe, &Reader::getObserve, &Builder::initObserve>,
      Place<&JobSpec::profile, &Reader::getProfile, &Builder::setProfile> {};

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

// What travels for a value.
template <class T>
auto WireValue(const T& value) {
  if constexpr (std::is_same_v<T, Grade>) {
    return static_cast<std::uint8_t>(value == Grade::kD ? 0 : static_cast<int>(value) + 1);
  } else if constexpr (std::is_same_v<T, std::optional<looptree::Dialect>>) {
    return static_cast<std::uint16_t>(value ? static_cast<int>(*value) + 1 : 0);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<std::uint16_t>(value);
  } else {
    return value;
  }
}

struct FieldWriter {
  Builder builder;

  template <auto kMember, class T>
  void operator()(const FieldOf<kMember>& /*field*/, const T& value) {
    using At = PlaceIn<Places, kMember>;
    if constexpr (std::is_same_v<T, std::string>) {
      if (!value.empty()) (builder.*At::kSet)(TextOf(value));
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      if (!value.empty()) {
        WriteTexts(value, (builder.*At::kSet)(static_cast<unsigned>(value.size())));
      }
    } else {
      using Wire = decltype((std::declval<Reader>().*At::kGet)());
      (builder.*At::kSet)(static_cast<Wire>(WireValue(value)));
    }
  }
};

struct FieldReader {
  Reader reader;

  template <auto kMember, class T>
  void operator()(const FieldOf<kMember>& field, T& place) {
    const auto value = (reader.*PlaceIn<Places, kMember>::kGet)();
    if constexpr (std::is_same_v<T, std::string>) {
      place = StringOf(value);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      place.reserve(value.size());
      for (const auto text : value) place.push_back(StringOf(text));
    } else if constexpr (std::is_same_v<T, Grade>) {
      if (value > kAllGrades.size()) RefuseMalformed(fmt::format("{} is {}", field.name, value));
      place = value == 0 ? Grade::kD : kAllGrades[value - 1];
    } else if constexpr (std::is_same_v<T, std::optional<looptree::Dialect>>) {
      const auto number = static_cast<std::uint16_t>(value);
      if (number > 0) place = ReadEnum<looptree::Dialect>(number - 1, field.name);
    } else if constexpr (std::is_enum_v<T>) {
      place = ReadEnum<T>(static_cast<std::uint16_t>(value), field.name);
    } else {
      place = value;
    }
  }
};

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

void WriteJobSpec(const JobSpec& spec, Builder builder) {
  WriteSource(spec.source, builder.initSource());
  if (!spec.actions.empty()) {
    WriteActions(spec.actions, builder.initActions(static_cast<unsigned>(spec.actions.size())), 0);
  }
  ForEachField(FieldWriter{builder}, spec);
}

JobSpec ReadJobSpec(Reader reader) {
  JobSpec spec;
  spec.source = ReadSource(reader.getSource());
  const auto actions = reader.getActions();
  spec.actions.reserve(actions.size());
  ReadActions(actions, 0, actions.size(), spec.actions);
  ForEachField(FieldReader{reader}, spec);
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
