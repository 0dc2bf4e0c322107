#include "worker/evaluation/measured_code.h"

#include <fmt/format.h>

#include <chrono>

namespace loopfleet::worker {
namespace {

bool IsCutOff(const JobSpec& spec, const Measurement& measurement) {
  return spec.cut_above_ns != 0 &&
         measurement.elapsed_high_ns > static_cast<double>(spec.cut_above_ns);
}

}  // namespace

bool AnswersJob(const Measurement& measurement, double reference_mhz, const JobSpec& spec,
                const Evaluation& evaluation) {
  if (spec.freshness != Freshness::kAllowStored) return false;
  if (reference_mhz != evaluation.conditions->hardware.clock_mhz) return false;
  if (spec.precision > 0 && measurement.spread > spec.precision) return false;
  if (measurement.grade > spec.min_grade) return false;
  return !IsCutOff(spec, measurement);  // it gets its CUT by being measured
}

std::string MeasuredCode::KeyOf(const std::string& code_hash, const JobSpec& spec) {
  return fmt::format("{} {} {}", code_hash, spec.threads, static_cast<int>(spec.cache));
}

std::optional<Measurement> MeasuredCode::Find(const looptree::Program& program, const JobSpec& spec,
                                              const Evaluation& evaluation, Instant now) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(KeyOf(evaluation.code_hash, spec));
  if (found == entries_.end() || !(found->second.program == program)) return std::nullopt;
  const Measurement& measurement = found->second.measurement;
  const double age_s = std::chrono::duration<double>(now - found->second.measured_at).count();
  if (spec.max_age_s > 0 && age_s > spec.max_age_s) return std::nullopt;
  if (!AnswersJob(measurement, found->second.reference_mhz, spec, evaluation)) return std::nullopt;
  return measurement;
}

void MeasuredCode::Add(const looptree::Program& program, const JobSpec& spec,
                       const Evaluation& evaluation, const Measured& measured) {
  if (!evaluation.is_timed() || evaluation.measurement().grade > Grade::kB) return;
  std::string key = KeyOf(evaluation.code_hash, spec);
  std::lock_guard lock(mutex_);
  if (measured.from < forgotten_at_) return;
  const auto [entry, is_new] = entries_.insert_or_assign(
      std::move(key), Entry{.program = program,
                            .measurement = evaluation.measurement(),
                            .reference_mhz = evaluation.conditions->hardware.clock_mhz,
                            .measured_at = measured.to});
  if (is_new) oldest_first_.push_back(entry->first);
  if (oldest_first_.size() <= max_kernels_) return;
  entries_.erase(oldest_first_.front());
  oldest_first_.pop_front();
}

void MeasuredCode::Forget(Instant now) {
  std::lock_guard lock(mutex_);
  forgotten_at_ = now;
  entries_.clear();
  oldest_first_.clear();
}

}  // namespace loopfleet::worker
