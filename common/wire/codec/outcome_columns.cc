#include "common/wire/codec/outcome_columns.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace loopfleet::wire {
namespace {

// The entry for `row` in a list sorted by row, or nullptr.
template <class T>
const T* Find(const std::vector<std::pair<std::uint32_t, T>>& entries, std::uint32_t row) {
  const auto found =
      std::ranges::lower_bound(entries, row, {}, &std::pair<std::uint32_t, T>::first);
  return found != entries.end() && found->first == row ? &found->second : nullptr;
}

constexpr double kNoTime = std::numeric_limits<double>::quiet_NaN();

// The 0-based index of `value` in a table; a new value is added. Searches from the end, because a
// new row is mostly like the last one.
template <class T>
std::uint32_t PlaceOf(const T& value, std::vector<T>& table) {
  const auto found = std::ranges::find(table.rbegin(), table.rend(), value);
  if (found != table.rend()) {
    return static_cast<std::uint32_t>(table.rend() - found) - 1;
  }
  table.push_back(value);
  return static_cast<std::uint32_t>(table.size()) - 1;
}

}  // namespace

void TextRows::Append(std::string_view text) {
  bytes += text;
  offsets.push_back(static_cast<std::uint32_t>(bytes.size()));
}

const Failure& EvaluationColumns::failure(std::uint32_t row) const {
  const Failure* found = Find(failures, row);
  LF_CHECK(found != nullptr, "row {} did not fail", row);
  return *found;
}

const Observed& EvaluationColumns::observed_of(std::uint32_t row) const {
  const Observed* found = Find(observed, row);
  LF_CHECK(found != nullptr, "row {} was not observed", row);
  return *found;
}

Evaluation EvaluationColumns::Row(std::uint32_t row) const {
  Evaluation evaluation;
  if (is_timed(row)) {
    const auto first = static_cast<std::ptrdiff_t>(sample_offsets[row]);
    const auto last = static_cast<std::ptrdiff_t>(sample_offsets[row + 1]);
    evaluation.verdict =
        Measurement{.elapsed_ns = elapsed_ns[row],
                    .elapsed_low_ns = elapsed_low_ns[row],
                    .elapsed_high_ns = elapsed_high_ns[row],
                    .elapsed_min_ns = elapsed_min_ns[row],
                    .elapsed_mean_ns = elapsed_mean_ns[row],
                    .spread = spread[row],
                    .grade = grade[row],
                    .iterations_per_sample = iterations_per_sample[row],
                    .samples_ns = {samples_ns.begin() + first, samples_ns.begin() + last},
                    .sample_flags = {sample_flags.begin() + first, sample_flags.begin() + last},
                    .thinned = std::nullopt,
                    .clock_before_mhz = clock_before_mhz[row],
                    .clock_after_mhz = clock_after_mhz[row],
                    .device = std::nullopt};
    if (const DeviceState* state = Find(device_states, row)) {
      std::get<Measurement>(evaluation.verdict).device = *state;
    }
    if (const Thinned* before = Find(thinned, row)) {
      std::get<Measurement>(evaluation.verdict).thinned = *before;
    }
  } else if (ok(row)) {
    evaluation.verdict = observed_of(row);
  } else {
    evaluation.verdict = failure(row);
  }
  if (subject_known[row]) evaluation.subject = subjects[row];
  evaluation.flop_count = flop_count[row];
  if (const Conditions* found = conditions_of(row)) evaluation.conditions = *found;
  evaluation.scratch_bytes = scratch_bytes[row];
  evaluation.code_hash = code_hash[row];
  if (const auto* found = Find(notes, row)) evaluation.notes = *found;
  evaluation.same_code = same_code[row];
  evaluation.stages = stages[row];
  return evaluation;
}

void EvaluationColumns::Append(const Evaluation& evaluation) {
  const std::uint32_t row = rows();
  static const Measurement none{.elapsed_ns = kNoTime,
                                .elapsed_low_ns = kNoTime,
                                .elapsed_high_ns = kNoTime,
                                .elapsed_min_ns = kNoTime,
                                .elapsed_mean_ns = kNoTime,
                                .spread = kNoTime,
                                .grade = Grade::kA};
  const Measurement& measurement = evaluation.is_timed() ? evaluation.measurement() : none;
  if (evaluation.is_timed()) {
    status.push_back(kStatusTimed);
  } else if (evaluation.ok()) {
    status.push_back(kStatusObserved);
    observed.emplace_back(row, evaluation.observed());
  } else {
    status.push_back(static_cast<std::uint16_t>(evaluation.failure().code));
    failures.emplace_back(row, evaluation.failure());
  }
  elapsed_ns.push_back(measurement.elapsed_ns);
  elapsed_low_ns.push_back(measurement.elapsed_low_ns);
  elapsed_high_ns.push_back(measurement.elapsed_high_ns);
  elapsed_min_ns.push_back(measurement.elapsed_min_ns);
  elapsed_mean_ns.push_back(measurement.elapsed_mean_ns);
  spread.push_back(measurement.spread);
  clock_before_mhz.push_back(measurement.clock_before_mhz);
  clock_after_mhz.push_back(measurement.clock_after_mhz);
  if (measurement.device) device_states.emplace_back(row, *measurement.device);
  if (measurement.thinned) thinned.emplace_back(row, *measurement.thinned);
  grade.push_back(measurement.grade);
  iterations_per_sample.push_back(measurement.iterations_per_sample);
  samples_ns.insert(samples_ns.end(), measurement.samples_ns.begin(), measurement.samples_ns.end());
  sample_flags.insert(sample_flags.end(), measurement.sample_flags.begin(),
                      measurement.sample_flags.end());
  sample_offsets.push_back(static_cast<std::uint32_t>(samples_ns.size()));
  subject_known.push_back(evaluation.subject.has_value());
  subjects.push_back(evaluation.subject.value_or(SubjectKey{}));
  flop_count.push_back(evaluation.flop_count);
  scratch_bytes.push_back(evaluation.scratch_bytes);
  conditions.push_back(evaluation.conditions ? PlaceOf(*evaluation.conditions, conditions_table) + 1
                                             : 0);
  code_hash.Append(evaluation.code_hash);
  stages.push_back(evaluation.stages);
  same_code.push_back(evaluation.same_code);
  if (!evaluation.notes.empty()) notes.emplace_back(row, evaluation.notes);
}

void OutcomeColumns::Append(const Outcome& outcome) {
  if (rows() == 0) batch = outcome.job.batch;
  LF_CHECK(outcome.job.batch == batch, "outcome of batch {} among those of {}", outcome.job.batch,
           batch);
  evaluations.Append(outcome.evaluation);
  index.push_back(outcome.job.index);
  sequence.push_back(outcome.sequence);
  source.push_back(outcome.source);
  attempts.push_back(outcome.attempts);
  finished_at.push_back(outcome.finished_at);
  worker.push_back(outcome.worker.empty() ? 0 : PlaceOf(outcome.worker, worker_table) + 1);
  benchmark.push_back(PlaceOf(outcome.benchmark, benchmark_table));
  actions.insert(actions.end(), outcome.actions.begin(), outcome.actions.end());
  action_offsets.push_back(static_cast<std::uint32_t>(actions.size()));
  tag.Append(outcome.tag);
}

Outcome OutcomeColumns::Row(std::uint32_t row) const {
  return {
      .job = {.batch = batch, .index = index[row]},
      .sequence = sequence[row],
      .source = source[row],
      .attempts = attempts[row],
      .worker = worker[row] == 0 ? std::string() : worker_table[worker[row] - 1],
      .finished_at = finished_at[row],
      .evaluation = evaluations.Row(row),
      .benchmark = benchmark_of(row),
      .actions = {actions.begin() + action_offsets[row], actions.begin() + action_offsets[row + 1]},
      .tag = std::string(tag[row])};
}

}  // namespace loopfleet::wire
