#include "coordinator/audit.h"

#include <algorithm>
#include <utility>

namespace loopfleet::coordinator {
namespace {

// SplitMix64: neighbouring ids are to have nothing in common.
std::uint64_t Mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

Opinion OpinionOf(const Uuid& worker, std::string name, JobId job, const Measurement& measurement) {
  return {.worker = worker,
          .name = std::move(name),
          .job = job,
          .low_ns = measurement.elapsed_low_ns,
          .high_ns = measurement.elapsed_high_ns};
}

bool Agree(const Opinion& a, const Opinion& b) {
  const double apart = std::max(a.low_ns, b.low_ns);
  return apart <= std::min(a.high_ns, b.high_ns) * (1 + kAuditTolerance);
}

std::optional<std::size_t> OddOne(const std::vector<Opinion>& three) {
  if (three.size() != 3) return std::nullopt;
  for (std::size_t odd = 0; odd < 3; ++odd) {
    const Opinion& a = three[(odd + 1) % 3];
    const Opinion& b = three[(odd + 2) % 3];
    if (Agree(a, b) && !Agree(a, three[odd]) && !Agree(b, three[odd])) return odd;
  }
  return std::nullopt;
}

bool IsAudited(JobId job, std::uint32_t per_10000) {
  return Mixed(Mixed(job.batch.value) ^ job.index) % 10'000 < per_10000;
}

void AuditRecord::Note(Came came) {
  ++audits_;
  if (came != Came::kConfirmed) ++disputes_;
  if (came == Came::kDisputed) return;
  last_.push_back(came);
  if (last_.size() > kRemembered) last_.pop_front();
}

bool AuditRecord::IsConvicted() const {
  return std::ranges::count(last_, Came::kOdd) >= static_cast<std::ptrdiff_t>(kStrikes);
}

}  // namespace loopfleet::coordinator
