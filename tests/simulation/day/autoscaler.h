#pragma once
// Autoscaler: how many workers a fleet should have by the jobs that wait and run, as KEDA and
// Kubernetes' HorizontalPodAutoscaler reckon with deploy/kubernetes/autoscaled/scaled-object.yaml.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>

#include "common/base/clock.h"

namespace loopfleet::simulation {

class Autoscaler {
 public:
  struct Rule {
    double jobs_per_worker = 24;  // two minutes of work at 5 s a job
    std::size_t least = 2;
    std::size_t most = 32;
    Nanos interval = std::chrono::seconds(30);
    // A worker goes only if none of the wishes of this long needed it, a quarter of them a minute.
    Nanos stabilization = std::chrono::seconds(600);
    double most_removed = 0.25;
    double tolerance = 0.1;  // of the ratio of wish to workers: below, nothing changes
  };
  explicit Autoscaler(const Rule& rule) : rule_(rule) {}

  // `jobs` wait or run; `workers` were asked for and not sent away.
  std::size_t Wish(Instant now, std::size_t jobs, std::size_t workers) {
    const double needed = static_cast<double>(jobs) / rule_.jobs_per_worker;
    std::size_t wish = workers;
    if (workers == 0 || std::abs(needed / static_cast<double>(workers) - 1) > rule_.tolerance) {
      wish = std::clamp(static_cast<std::size_t>(std::ceil(needed)), rule_.least, rule_.most);
    }
    wishes_.push_back({now, wish});
    while (wishes_.front().at < now - rule_.stabilization) wishes_.pop_front();
    if (wish >= workers) return wish;
    const std::size_t stable = std::ranges::max(wishes_, {}, &Past::wish).wish;
    if (stable >= workers) return workers;
    if (now < next_removal_) return workers;
    next_removal_ = now + std::chrono::minutes(1);
    const auto kept = static_cast<std::size_t>(
        std::floor(static_cast<double>(workers) * (1 - rule_.most_removed)));
    return std::max(stable, kept);
  }

 private:
  struct Past {
    Instant at;
    std::size_t wish = 0;
  };
  const Rule rule_;
  std::deque<Past> wishes_;
  Instant next_removal_{};
};

}  // namespace loopfleet::simulation
