#pragma once
// MeasuredCode: the figures of kernels that this worker has measured, by their machine code. Two
// trees of one program often become the same code; then the second one needs neither verification
// nor timing, and has the figure of the first (`source: same_code`). Safe from any thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/job/job_spec.h"
#include "common/job/outcome.h"
#include "common/looptree/program/program.h"

namespace loopfleet::worker {

// Whether a kernel's figure may answer a job whose kernel has the same machine code: the job is not
// `fresh`, and the figure is as good as it asks for and stated at the job's reference clock.
bool AnswersJob(const Measurement& measurement, double reference_mhz, const JobSpec& spec,
                const Evaluation& evaluation);

class MeasuredCode {
 public:
  explicit MeasuredCode(std::size_t max_kernels = 4'096) : max_kernels_(max_kernels) {}

  // The figure that answers the job of `evaluation`, whose kernel is compiled. None: there is none,
  // it is too old, or it does not answer the job (AnswersJob).
  std::optional<Measurement> Find(const looptree::Program& program, const JobSpec& spec,
                                  const Evaluation& evaluation, Instant now) const;
  // From the first round of a measurement to its end.
  struct Measured {
    Instant from{};
    Instant to{};
  };
  // Kept if its grade is A or B, unless it was forgotten before it ended.
  void Add(const looptree::Program& program, const JobSpec& spec, const Evaluation& evaluation,
           const Measured& measured);
  // Call while the canaries drift: what was measured so far may be wrong, rounds of unfinished
  // measurements included.
  void Forget(Instant now);

 private:
  struct Entry {
    looptree::Program program;
    Measurement measurement;
    double reference_mhz = 0;  // HardwareFacts::clock_mhz, that its times are stated at
    Instant measured_at{};
  };
  static std::string KeyOf(const std::string& code_hash, const JobSpec& spec);

  const std::size_t max_kernels_;
  mutable std::mutex mutex_;  // guards all below
  Instant forgotten_at_ = Instant::min();
  std::unordered_map<std::string, Entry> entries_;
  std::deque<std::string> oldest_first_;  // the keys of entries_
};

}  // namespace loopfleet::worker
