#include "client/python/dataset_row.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/enum_names.h"
#include "common/job/task.h"
#include "common/looptree/actions/action.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;

nb::object Text(std::string_view text) { return nb::str(text.data(), text.size()); }
nb::object TextOrNone(std::string_view text) { return text.empty() ? nb::none() : Text(text); }
nb::object Number(double value) {
  return std::isfinite(value) ? nb::object(nb::float_(value)) : nb::none();
}
nb::object PositiveNumber(double value) {
  return value > 0 ? nb::object(nb::float_(value)) : nb::none();
}
template <class Integer>
nb::object Count(Integer value) {
  return nb::int_(value);
}

template <class T>
nb::list List(const std::vector<T>& values) {
  nb::list list;
  for (const T value : values) list.append(value);
  return list;
}

// A failed job may have been meant for another kind, which its benchmark says. A failed profile has
// a row, because its benchmark is a schedule's.
bool HasRow(const Outcome& outcome) {
  if (outcome.evaluation.ok()) return outcome.evaluation.is_timed();
  return TaskOf(outcome.benchmark).kind == TaskKind::kLoopSchedule;
}

void AddQuestion(const Outcome& outcome, nb::dict& row) {
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&outcome.benchmark);
  const auto* ir = std::get_if<looptree::IrText>(&outcome.benchmark);
  row["benchmark"] = TextOrNone(uri == nullptr ? std::string_view() : uri->text);
  row["ir"] = TextOrNone(ir == nullptr ? std::string_view() : ir->text);
  row["program"] = nb::none();
  row["region"] = nb::none();
  nb::list actions;
  for (const auto& action : outcome.actions) actions.append(Text(looptree::ActionName(action)));
  row["actions"] = actions;
}

void AddVerdict(const Evaluation& evaluation, nb::dict& row) {
  row["tree_key"] = evaluation.subject ? Text(evaluation.subject->ToString()) : nb::none();
  if (evaluation.ok()) {
    row["status"] = Text("ok");
    row["message"] = nb::none();
    row["action_index"] = nb::none();
    return;
  }
  const Failure& failure = evaluation.failure();
  const FailureInfo& info = InfoOf(failure.code);
  row["status"] = Text(info.name);
  row["message"] = Text(failure.message.empty() ? info.advice : std::string_view(failure.message));
  row["action_index"] = failure.action_index ? Count(*failure.action_index) : nb::none();
}

void AddFigures(const Evaluation& evaluation, nb::dict& row) {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  static const Measurement none{.elapsed_ns = kNone,
                                .elapsed_low_ns = kNone,
                                .elapsed_high_ns = kNone,
                                .elapsed_min_ns = kNone,
                                .elapsed_mean_ns = kNone,
                                .spread = kNone};
  const bool ok = evaluation.is_timed();
  const Measurement& measurement = ok ? evaluation.measurement() : none;
  row["gflops"] = Number(GflopPerSecond(evaluation.flop_count, measurement));
  row["elapsed_ns"] = Number(measurement.elapsed_ns);
  row["elapsed_low_ns"] = Number(measurement.elapsed_low_ns);
  row["elapsed_high_ns"] = Number(measurement.elapsed_high_ns);
  row["elapsed_min_ns"] = Number(measurement.elapsed_min_ns);
  row["elapsed_mean_ns"] = Number(measurement.elapsed_mean_ns);
  row["spread"] = Number(measurement.spread);
  row["grade"] = ok ? Text(EnumName(measurement.grade)) : nb::none();
  row["samples_ns"] = List(measurement.samples_ns);
  row["sample_flags"] = List(measurement.sample_flags);
  row["samples_before_thinning"] =
      measurement.thinned ? Count(measurement.thinned->samples_before) : nb::none();
  row["iterations_per_sample"] = ok ? Count(measurement.iterations_per_sample) : nb::none();
  row["flop_count"] = evaluation.flop_count != 0 ? Count(evaluation.flop_count) : nb::none();
  row["scratch_bytes"] = evaluation.conditions ? Count(evaluation.scratch_bytes) : nb::none();
}

void AddConditions(const Outcome& outcome, nb::dict& row) {
  static const Conditions none;
  const Evaluation& evaluation = outcome.evaluation;
  const Conditions& conditions = evaluation.conditions ? *evaluation.conditions : none;
  const HardwareFacts& hardware = conditions.hardware;
  const auto known = [&](nb::object value) { return evaluation.conditions ? value : nb::none(); };
  row["threads"] = known(Count(conditions.threads));
  row["cache"] = known(Text(EnumName(conditions.cache)));
  row["policy"] = known(Text(conditions.policy));
  row["isolation"] = known(Text(conditions.isolation));
  row["worker"] = TextOrNone(outcome.worker);
  row["hardware_class"] = known(Text(hardware.hardware_class));
  row["hardware_model"] = known(Text(hardware.model));
  row["isa"] = known(Text(hardware.isa));
  row["microcode"] = known(Text(hardware.microcode));
  row["reference_clock_mhz"] = known(Number(hardware.clock_mhz));
  row["peak_gflops"] = PositiveNumber(hardware.peaks.flop_per_second / 1e9);
  const auto clock = [&](double Measurement::* reading) {
    return evaluation.is_timed() ? PositiveNumber(evaluation.measurement().*reading) : nb::none();
  };
  row["clock_before_mhz"] = clock(&Measurement::clock_before_mhz);
  row["clock_after_mhz"] = clock(&Measurement::clock_after_mhz);
  row["llvm"] = known(Text(conditions.compiler.llvm));
  row["tier"] = known(Text(conditions.compiler.tier));
  row["lowering"] = known(Text(conditions.compiler.revision));
  row["code_hash"] = evaluation.conditions ? TextOrNone(evaluation.code_hash) : nb::none();
}

void AddProvenance(const Outcome& outcome, nb::dict& row) {
  const bool no_worker_had_it = outcome.source == OutcomeSource::kMeasured &&
                                !outcome.evaluation.ok() && outcome.attempts == 0;
  row["source"] = no_worker_had_it ? nb::none() : Text(SourceText(outcome));
  row["attempts"] = Count(outcome.attempts);
  row["suspect"] = nb::none();
  row["tag"] = TextOrNone(outcome.tag);
  row["batch"] = Count(outcome.job.batch.value);
  row["index"] = Count(outcome.job.index);
  // A damaged row has lost its time.
  row["finished_at"] =
      outcome.finished_at == WallTime{} ? nb::none() : Text(IsoTime(outcome.finished_at));
}

}  // namespace

std::string IsoTime(WallTime at) {
  const auto since = at.time_since_epoch();
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), ms);
}

nb::object DatasetRow(const Outcome& outcome) {
  if (!HasRow(outcome)) return nb::none();
  nb::dict row;
  AddQuestion(outcome, row);
  AddVerdict(outcome.evaluation, row);
  AddFigures(outcome.evaluation, row);
  AddConditions(outcome, row);
  AddProvenance(outcome, row);
  return row;
}

}  // namespace loopfleet::python
