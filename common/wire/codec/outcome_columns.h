#pragma once
// OutcomeColumns: outcomes in the layout of the wire, one vector for each column, for callers that
// process many figures. Values that rarely differ between rows (conditions, programs, names) are
// held once. Every offset, index and figure is valid: the decoder checks them, and Append adds only
// valid ones.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/job/outcome.h"

namespace loopfleet::wire {

// Concatenated texts.
struct TextRows {
  std::string bytes;  // UTF-8
  std::vector<std::uint32_t> offsets = {
      0};  // rows + 1: row i is bytes [offsets[i], offsets[i + 1])
  void Append(std::string_view text);
  std::string_view operator[](std::uint32_t row) const {
    return std::string_view(bytes).substr(offsets[row], offsets[row + 1] - offsets[row]);
  }
};

// Statuses of rows that did not fail.
inline constexpr std::uint16_t kStatusTimed = 0;
inline constexpr std::uint16_t kStatusObserved = 65'535;

// Each vector has one entry for each row unless it says otherwise; units as in Measurement.
struct EvaluationColumns {
  // kStatusTimed, kStatusObserved, or the failure's code.
  std::vector<std::uint16_t> status;
  // Not-a-number in a row that was not timed.
  std::vector<double> elapsed_ns, elapsed_low_ns, elapsed_high_ns, elapsed_min_ns, elapsed_mean_ns,
      spread;
  std::vector<double> clock_before_mhz, clock_after_mhz;  // 0 in a row that was not timed
  std::vector<Grade> grade;                               // kA in a row that was not timed
  std::vector<std::uint64_t> iterations_per_sample;
  std::vector<std::uint32_t> sample_offsets = {0};  // rows + 1
  std::vector<double> samples_ns;                   // of all rows, concatenated
  std::vector<std::uint8_t> sample_flags;           // one for each sample
  std::vector<bool> subject_known;
  std::vector<SubjectKey> subjects;  // zeros where not known
  std::vector<std::uint64_t> flop_count, scratch_bytes;
  std::vector<std::uint32_t> conditions;  // 1-based index into conditions_table; 0: none
  std::vector<Conditions> conditions_table;
  TextRows code_hash;
  std::vector<StageDurations> stages;
  // By ascending row. Each failed row has an entry in `failures`, each observed one in `observed`.
  std::vector<std::pair<std::uint32_t, Failure>> failures;
  std::vector<std::pair<std::uint32_t, Observed>> observed;
  std::vector<std::pair<std::uint32_t, std::vector<std::string>>> notes;
  std::vector<std::pair<std::uint32_t, DeviceState>> device_states;
  std::vector<std::pair<std::uint32_t, Thinned>> thinned;
  std::vector<bool> same_code;

  std::uint32_t rows() const { return static_cast<std::uint32_t>(status.size()); }
  bool is_timed(std::uint32_t row) const { return status[row] == kStatusTimed; }
  bool ok(std::uint32_t row) const { return is_timed(row) || status[row] == kStatusObserved; }
  const Failure& failure(std::uint32_t row) const;       // of a failed row
  const Observed& observed_of(std::uint32_t row) const;  // of an observed row
  // nullptr: no worker had the job.
  const Conditions* conditions_of(std::uint32_t row) const {
    return conditions[row] == 0 ? nullptr : &conditions_table[conditions[row] - 1];
  }
  Evaluation Row(std::uint32_t row) const;
  void Append(const Evaluation& evaluation);
};

struct OutcomeColumns {
  BatchId batch;
  EvaluationColumns evaluations;
  std::vector<std::uint32_t> index;
  std::vector<std::uint64_t> sequence;
  std::vector<OutcomeSource> source;
  std::vector<std::uint32_t> attempts;
  std::vector<WallTime> finished_at;
  std::vector<std::uint32_t> worker;  // 1-based index into worker_table; 0: none
  std::vector<std::string> worker_table;
  std::vector<std::uint32_t> benchmark;  // 0-based index into benchmark_table
  std::vector<looptree::Source> benchmark_table;
  std::vector<std::uint32_t> action_offsets = {0};  // rows + 1
  std::vector<looptree::Action> actions;            // of all rows, concatenated
  TextRows tag;

  std::uint32_t rows() const { return evaluations.rows(); }
  const looptree::Source& benchmark_of(std::uint32_t row) const {
    return benchmark_table[benchmark[row]];
  }
  Outcome Row(std::uint32_t row) const;
  // Adds a row. The first row sets the batch; later ones must be of the same batch.
  void Append(const Outcome& outcome);
};

}  // namespace loopfleet::wire
