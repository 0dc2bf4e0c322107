// loopfleet-fleet-day [MOST]: a day of two fleets, scaled by the queue as Kubernetes and as Slurm
// do, with at most MOST workers (32). Prints a line of JSON for each; exit status 1: a promise was
// broken.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>

#include "common/base/log.h"
#include "tests/simulation/day/fleet_day.h"

namespace loopfleet::simulation {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

bool Report(const FleetPlan& plan) {
  const DayReport report = RunFleetDay(plan);
  const double fixed = 24 * static_cast<double>(report.most_workers);
  fmt::print(
      R"({{"fleet": "{}", "jobs": {}, "most_waiting": {}, "mean_wait_s": {:.1f}, "longest_wait_s": {:.0f}, )"
      R"("workers_started": {}, "workers_killed": {}, "most_workers": {}, "worker_hours": {:.1f}, )"
      R"("hours_of_peak_fleet": {:.0f}, "share": {:.2f}, "busy": {:.2f}}})"
      "\n",
      plan.name, report.jobs, report.most_waiting, report.mean_wait_s, report.longest_wait_s,
      report.workers_started, report.workers_killed, report.most_workers, report.worker_hours,
      fixed, report.worker_hours / fixed, report.busy_hours / report.worker_hours);
  for (const std::string& wrong : report.wrong) fmt::print("{}: {}\n", plan.name, wrong);
  if (report.workers_killed == 0) fmt::print("{}: no machine was lost\n", plan.name);
  return report.wrong.empty() && report.workers_killed > 0;
}

int Main(int argc, const char* const* argv) {
  log::Init("loopfleet-fleet-day", log::Level::kError);
  Autoscaler::Rule rule;
  if (argc > 1) {
    const char* end = argv[1] + std::strlen(argv[1]);
    if (std::from_chars(argv[1], end, rule.most).ptr != end) return 2;
  }
  const bool kubernetes = Report({.name = "kubernetes",
                                  .seed = 1,
                                  .rule = rule,
                                  .shortest_start = minutes(2),  // a node of a cloud
                                  .longest_start = minutes(4),
                                  .killed_per_hour = 0.05});
  const bool slurm = Report({.name = "slurm",
                             .seed = 2,
                             .rule = rule,
                             .shortest_start = seconds(10),  // waits in Slurm's queue
                             .longest_start = minutes(8),
                             .time_limit = hours(2),
                             .killed_per_hour = 0.05});
  return kubernetes && slurm ? 0 : 1;
}

}  // namespace
}  // namespace loopfleet::simulation

int main(int argc, char** argv) { return loopfleet::simulation::Main(argc, argv); }
