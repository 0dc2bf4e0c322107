#include "storage/postgres/outcome_row.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "common/base/check.h"
#include "common/base/enum_names.h"
#include "common/looptree/actions/action.h"

namespace loopfleet::storage {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The columns in pairs of name and value: one list, so that they cannot come apart.
struct Column {
  const char* name;
  std::optional<std::string> value;
};

template <class Value>
std::string Text(const Value& value) {
  return fmt::format("{}", value);
}

// The columns are signed: the upper half, which no honest worker reports, becomes negative, as in
// SQLite.
std::string Text(std::uint64_t value) {
  return fmt::format("{}", static_cast<std::int64_t>(value));
}
std::string Text(std::uint32_t value) {
  return fmt::format("{}", static_cast<std::int32_t>(value));
}

void AddFailure(const Failure* failure, std::vector<Column>& row) {
  const bool is = failure != nullptr;
  const auto when = [&](auto value) {
    return is ? std::optional(std::string(value())) : std::nullopt;
  };
  row.push_back({"failure", when([&] { return InfoOf(failure->code).name; })});
  row.push_back({"message", when([&] { return PostgresText(failure->message); })});
  row.push_back({"action_index", is && failure->action_index
                                     ? std::optional(Text(*failure->action_index))
                                     : std::nullopt});
  row.push_back({"signal", when([&] { return Text(failure->signal); })});
}

void AddMeasurement(const Measurement* timed, bool has_samples, std::vector<Column>& row) {
  const auto when = [&](bool is, auto value) {
    return is ? std::optional(std::string(value())) : std::nullopt;
  };
  const auto figure = [&](const char* name, auto member) {
    row.push_back({name, when(timed != nullptr, [&] { return Text(timed->*member); })});
  };
  figure("elapsed_ns", &Measurement::elapsed_ns);
  figure("elapsed_low_ns", &Measurement::elapsed_low_ns);
  figure("elapsed_high_ns", &Measurement::elapsed_high_ns);
  figure("elapsed_min_ns", &Measurement::elapsed_min_ns);
  figure("elapsed_mean_ns", &Measurement::elapsed_mean_ns);
  figure("spread", &Measurement::spread);
  row.push_back({"grade", when(timed != nullptr, [&] { return EnumName(timed->grade); })});
  figure("iterations", &Measurement::iterations_per_sample);
  const bool samples = timed != nullptr && has_samples;
  row.push_back({"samples_ns", when(samples, [&] {
                   return fmt::format("{{{}}}", fmt::join(timed->samples_ns, ","));
                 })});
  row.push_back(
      {"sample_flags", when(samples, [&] { return PostgresBytes(timed->sample_flags); })});
  const bool is_thinned = timed != nullptr && timed->thinned;
  row.push_back(
      {"samples_before", when(is_thinned, [&] { return Text(timed->thinned->samples_before); })});
  row.push_back(
      {"accepted_before", when(is_thinned, [&] { return Text(timed->thinned->accepted_before); })});
  const bool has_clock = timed != nullptr && timed->clock_before_mhz + timed->clock_after_mhz > 0;
  row.push_back({"clock_mhz", when(has_clock, [&] {
                   return Text((timed->clock_before_mhz + timed->clock_after_mhz) / 2);
                 })});
  row.push_back(
      {"clock_before_mhz", when(has_clock, [&] { return Text(timed->clock_before_mhz); })});
  row.push_back({"clock_after_mhz", when(has_clock, [&] { return Text(timed->clock_after_mhz); })});
}

std::vector<Column> ColumnsOf(int coordinator, const Outcome& outcome,
                              std::optional<int> conditions, const FigureName* repeated) {
  const Evaluation& evaluation = outcome.evaluation;
  std::vector<Column> row = {
      {"coordinator", Text(coordinator)},
      {"batch", Text(outcome.job.batch.value)},
      {"index", Text(outcome.job.index)},
      {"sequence", Text(outcome.sequence)},
      {"benchmark",
       std::visit([](const auto& source) { return PostgresText(source.text); }, outcome.benchmark)},
      {"actions", fmt::format("{}", fmt::join(looptree::ActionNames(outcome.actions), ","))},
      {"tag", PostgresText(outcome.tag)},
      {"source", std::string(SourceText(outcome))},
      {"attempts", Text(outcome.attempts)},
      {"worker", PostgresText(outcome.worker)},
      {"finished_at", PostgresTime(outcome.finished_at)}};
  constexpr const char* kStageColumns[] = {"queue_ns",  "replay_ns",  "compile_ns",
                                           "verify_ns", "measure_ns", "store_ns"};
  static_assert(std::size(kStageColumns) == kStages.size());
  for (const Stage stage : kStages) {
    row.push_back(
        {kStageColumns[static_cast<std::size_t>(stage)], Text(evaluation.stages[stage].count())});
  }
  row.push_back({"tree_key", evaluation.subject
                                 ? std::optional(PostgresBytes(evaluation.subject->bytes))
                                 : std::nullopt});
  row.push_back({"conditions", conditions ? std::optional(Text(*conditions)) : std::nullopt});
  row.push_back({"flop_count", Text(evaluation.flop_count)});
  row.push_back({"scratch_bytes", Text(evaluation.scratch_bytes)});
  row.push_back({"code_hash", PostgresText(evaluation.code_hash)});
  row.push_back({"notes", PostgresList(evaluation.notes)});
  AddFailure(evaluation.ok() ? nullptr : &evaluation.failure(), row);
  AddMeasurement(evaluation.is_timed() ? &evaluation.measurement() : nullptr,
                 outcome.source == OutcomeSource::kMeasured, row);
  const bool is_observed = evaluation.ok() && !evaluation.is_timed();
  row.push_back({"observed", is_observed
                                 ? std::optional(PostgresJson(ObservedJson(evaluation.observed())))
                                 : std::nullopt});
  const auto figure = [&](const char* name, auto value) {
    row.push_back({name, repeated == nullptr ? std::nullopt : std::optional(value(*repeated))});
  };
  figure("figure_tree_key", [](const FigureName& of) { return PostgresBytes(of.subject.bytes); });
  figure("figure_worker", [](const FigureName& of) { return PostgresText(of.worker); });
  figure("figure_measured_at", [](const FigureName& of) { return PostgresTime(of.measured_at); });
  return row;
}

bool IsPlain(const std::string& text) {
  return std::ranges::all_of(text, [](char byte) { return byte > 0; });
}

}  // namespace

const std::vector<std::string>& OutcomeColumns() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    const Outcome any{.evaluation = {.verdict = Failure{}}};
    for (const Column& column : ColumnsOf(0, any, {}, nullptr)) all.emplace_back(column.name);
    return all;
  }();
  return names;
}

OutcomeRow RowOf(int coordinator, const Outcome& outcome, std::optional<int> conditions,
                 const FigureName* repeated) {
  std::vector<Column> columns = ColumnsOf(coordinator, outcome, conditions, repeated);
  LF_CHECK(columns.size() == kOutcomeColumns, "{} columns", columns.size());
  OutcomeRow row;
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::move(columns[i].value);
  return row;
}

std::string PostgresJson(const Json& json) {
  // A zero is the escape \u0000, which jsonb refuses; before it stands an even number of
  // backslashes.
  std::string text = Dump(json);
  for (std::size_t at = 0; (at = text.find('\\', at)) != std::string::npos; at += 2) {
    if (text.compare(at, 6, "\\u0000") == 0) text.replace(at, 6, "\\ufffd");
  }
  return text;
}

std::string PostgresText(const std::string& text) {
  if (IsPlain(text)) return text;
  // Replaces what is not UTF-8.
  std::string valid = Json::parse(Dump(Json(text))).get<std::string>();
  for (std::size_t zero = valid.find('\0'); zero != std::string::npos; zero = valid.find('\0')) {
    valid.replace(zero, 1, kReplacement);
  }
  return valid;
}

std::string PostgresBytes(std::span<const std::uint8_t> bytes) {
  return fmt::format("\\x{:02x}", fmt::join(bytes, ""));
}

std::string PostgresList(const std::vector<std::string>& texts) {
  std::string list = "{";
  for (const std::string& text : texts) {
    if (list.size() > 1) list += ',';
    list += '"';
    for (const char byte : PostgresText(text)) {
      if (byte == '"' || byte == '\\') list += '\\';
      list += byte;
    }
    list += '"';
  }
  return list + "}";
}

std::string PostgresTime(WallTime time) {
  const auto us = std::chrono::floor<std::chrono::microseconds>(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(us);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06}+00",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (us - seconds).count());
}

}  // namespace loopfleet::storage
