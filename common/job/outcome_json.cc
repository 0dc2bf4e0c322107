#include "common/job/outcome_json.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "common/looptree/actions/action.h"

namespace loopfleet {
namespace {

// JSON has no infinity and no NaN: they become null.
Json Figure(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json DeviceJson(const DeviceState& state) {
  const auto told = [](double value) { return value > 0 ? Json(value) : Json(nullptr); };
  return Json{{"temperature_c", told(state.temperature_c)},
              {"power_w", told(state.power_w)},
              {"memory_clock_mhz", told(state.memory_clock_mhz)},
              {"throttle_reasons", ThrottleReasons(state.throttle_reasons)}};
}

void AddMeasurement(Json& json, const Evaluation& evaluation) {
  const Measurement none;
  const bool ok = evaluation.is_timed();
  const Measurement& measurement = ok ? evaluation.measurement() : none;
  const auto figure = [&](double value) { return ok ? Figure(value) : Json(nullptr); };
  json["elapsed_ns"] = figure(measurement.elapsed_ns);
  json["elapsed_low_ns"] = figure(measurement.elapsed_low_ns);
  json["elapsed_high_ns"] = figure(measurement.elapsed_high_ns);
  json["elapsed_min_ns"] = figure(measurement.elapsed_min_ns);
  json["elapsed_mean_ns"] = figure(measurement.elapsed_mean_ns);
  json["samples_ns"] = measurement.samples_ns;
  json["sample_flags"] = measurement.sample_flags;
  // Number of samples before retention removed some; null: none were removed.
  json["samples_before_thinning"] =
      measurement.thinned ? Json(measurement.thinned->samples_before) : Json(nullptr);
  json["accepted_samples"] = ok ? Json(AcceptedSamples(measurement)) : Json(nullptr);
  const auto clock = [](double mhz) { return mhz > 0 ? Json(mhz) : Json(nullptr); };
  json["clock_mhz"] = {{"before", clock(measurement.clock_before_mhz)},
                       {"after", clock(measurement.clock_after_mhz)},
                       {"moved", ClockMoved(measurement)}};
  json["device"] = measurement.device ? DeviceJson(*measurement.device) : Json(nullptr);
  json["iterations_per_sample"] = ok ? Json(measurement.iterations_per_sample) : Json(nullptr);
  json["gflop_per_second"] =
      ok ? Figure(GflopPerSecond(evaluation.flop_count, measurement)) : Json(nullptr);
  json["flop_count"] = evaluation.flop_count != 0 ? Json(evaluation.flop_count) : Json(nullptr);
  json["spread"] = figure(measurement.spread);
  json["grade"] = ok ? Json(EnumName(measurement.grade)) : Json(nullptr);
}

void AddConditions(Json& json, const Evaluation& evaluation) {
  if (!evaluation.conditions) {
    for (const char* field : {"hardware", "compiler", "threads", "cache", "policy", "isolation"}) {
      json[field] = nullptr;
    }
    return;
  }
  const Conditions& conditions = *evaluation.conditions;
  json["hardware"] = HardwareJson(conditions.hardware);
  json["compiler"] = Json{{"llvm", conditions.compiler.llvm},
                          {"tier", conditions.compiler.tier},
                          {"revision", conditions.compiler.revision},
                          {"code_hash", evaluation.code_hash}};
  json["threads"] = conditions.threads;
  json["cache"] = EnumName(conditions.cache);
  json["policy"] = conditions.policy;
  json["isolation"] = conditions.isolation;
}

// Null: the job did not pass the stage. "store" is always null, because an outcome cannot contain
// the duration of its own write; the coordinator's loopfleet_job_stage_duration_seconds has it.
Json StagesJson(const StageDurations& stages) {
  Json json = Json::object();
  for (const Stage stage : kStages) {
    const Nanos took = stages[stage];
    json[std::string(StageName(stage))] = took > Nanos{0} ? Json(took.count()) : Json(nullptr);
  }
  return json;
}

Json TagJson(const std::string& tag) {
  if (tag.empty()) return nullptr;
  Json json = Json::parse(tag, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json(tag) : json;  // not JSON: from an older version
}

void AddQuestion(Json& json, const looptree::Source& source) {
  if (const auto* ir = std::get_if<looptree::IrText>(&source)) {
    json["benchmark"] = nullptr;
    json["ir"] = ir->text;
  } else {
    json["benchmark"] = std::get<looptree::BenchmarkUri>(source).text;
  }
}

struct ValueJson {
  Json operator()(const auto& value) const { return Json(value); }
  Json operator()(const Blob& blob) const {
    return Json{{"sha256", blob.sha256}, {"bytes", blob.bytes}};
  }
};

}  // namespace

Json FailureJson(const Failure& failure) {
  const FailureInfo& info = InfoOf(failure.code);
  Json json;
  json["code"] = info.name;
  json["message"] = failure.message.empty() ? std::string(info.advice) : failure.message;
  json["action_index"] = failure.action_index ? Json(*failure.action_index) : Json(nullptr);
  if (failure.signal != 0) json["signal"] = failure.signal;
  json["retryable"] = info.policy.is_retryable;
  return json;
}

Json ObservedJson(const Observed& observed) {
  Json json = Json::object();
  for (const auto& [name, value] : observed.values) json[name] = std::visit(ValueJson{}, value);
  return json;
}

Json HardwareJson(const HardwareFacts& facts) {
  // A mirror's keys hash this text, so the order stays.
  Json json{{"class", nullptr}, {"model", nullptr}, {"isa", nullptr}, {"clock_mhz", nullptr}};
  ForEachFact(
      [&]<class T>(const HardwareFact& fact, const T& value) {
        if constexpr (std::is_same_v<T, double>) {
          if (fact.is_rate) {
            json[fact.json] = value > 0 ? Json(value / 1e9) : Json(nullptr);
            return;
          }
        }
        if constexpr (!std::is_enum_v<T>) {
          if (!fact.json.empty()) json[fact.json] = value;
        }
      },
      facts);
  return json;
}

void AddNotes(const std::vector<std::string>& notes, Json& json) {
  json["no_effect"] = Json::array();
  json["effects"] = Json::array();
  for (const std::string& note : notes) {
    json[IsPartial(note) ? "effects" : "no_effect"].push_back(note);
  }
}

Json OutcomeJson(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  Json json;
  AddQuestion(json, outcome.benchmark);
  json["actions"] = looptree::ActionNames(outcome.actions);
  json["job"] = fmt::format("{}", outcome.job);
  json["tree_key"] = evaluation.subject ? Json(evaluation.subject->ToString()) : Json(nullptr);
  json["status"] = evaluation.ok() ? "ok" : "failed";
  if (!evaluation.ok()) json["error"] = FailureJson(evaluation.failure());
  AddMeasurement(json, evaluation);
  const bool is_observed = evaluation.ok() && !evaluation.is_timed();
  json["observed"] = is_observed ? ObservedJson(evaluation.observed()) : Json(nullptr);
  // Null: the job failed before any worker had it.
  const bool nobody_had_it =
      outcome.source == OutcomeSource::kMeasured && !evaluation.ok() && outcome.attempts == 0;
  json["source"] = nobody_had_it ? Json(nullptr) : Json(SourceText(outcome));
  json["attempts"] = outcome.attempts;
  json["worker"] = outcome.worker.empty() ? Json(nullptr) : Json(outcome.worker);
  AddConditions(json, evaluation);
  json["scratch_bytes"] = evaluation.conditions ? Json(evaluation.scratch_bytes) : Json(nullptr);
  AddNotes(evaluation.notes, json);
  json["stages_ns"] = StagesJson(evaluation.stages);
  json["tag"] = TagJson(outcome.tag);
  return json;
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace loopfleet
