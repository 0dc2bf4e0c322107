// write_metrics FOLDER: writes both daemons' /metrics at their start to coordinator.prom and
// worker.prom, every name a query may use to `names`, and the tables of docs/METRICS.md to
// `table.md`, for check_prometheus_config.sh.

#include <fstream>
#include <string>
#include <utility>

#include "monitoring/metric_table.h"
#include "monitoring/metrics.h"

namespace {

using namespace loopfleet::monitoring;

// One table for each kind of process: "| `name{labels}` | what it says |".
void WriteTables(std::ostream& out) {
  for (const auto& [home, title] :
       {std::pair{MetricHome::kCoordinator, "of the coordinator"},
        std::pair{MetricHome::kWorker, "of a worker"}, std::pair{MetricHome::kBoth, "of both"}}) {
    out << "| " << title << " | what it says |\n|---|---|\n";
    for (const MetricSpec& spec : MetricTable()) {
      if (spec.home != home) continue;
      out << "| `" << spec.name;
      for (const auto label : spec.labels) {
        out << (label == spec.labels.front() ? "{" : ",") << label;
      }
      out << (spec.labels.empty() ? "` | " : "}` | ") << spec.help
          << (spec.type == MetricType::kHistogram ? " Histogram." : "") << " |\n";
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];

  Registry coordinator;
  RegisterProcess(coordinator);
  RegisterBuildInfo(coordinator, {.component = "coordinator", .version = "0.1.0"});
  CoordinatorMetrics coordinator_metrics(coordinator, {.outcomes = {"ok", "WRONG_OUTPUT"},
                                                       .sources = {"measured", "stored"},
                                                       .devices = {"cpu", "cuda"},
                                                       .worker_states = {"ready", "lost"},
                                                       .attention = {"workers_lost"},
                                                       .stages = {"queue", "store"},
                                                       .refusals = {"BUSY"},
                                                       .retries = {"UNSTABLE_TIMING"},
                                                       .quarantines = {"memory_canary"}});
  coordinator_metrics.StageTook("queue", std::chrono::milliseconds(2));
  std::ofstream(folder + "/coordinator.prom") << coordinator.ToText();

  Registry worker;
  RegisterProcess(worker);
  RegisterBuildInfo(worker, {.component = "worker", .version = "0.1.0"});
  WorkerMetrics worker_metrics(worker, {.outcomes = {"ok", "RUN_CRASH"},
                                        .stages = {"compile", "measure"},
                                        .children = {"compiler", "executor"},
                                        .restart_reasons = {"crash", "timeout"},
                                        .activities = {"idle", "measure"},
                                        .grades = {"A", "B", "C"}});
  worker_metrics.JobCompleted("ok");
  std::ofstream(folder + "/worker.prom") << worker.ToText();

  std::ofstream table(folder + "/table.md");
  WriteTables(table);

  std::ofstream names(folder + "/names");
  for (const MetricSpec& spec : MetricTable()) {
    names << spec.name << "\n";
    if (spec.type != MetricType::kHistogram) continue;
    for (const char* suffix : {"_bucket", "_count", "_sum"}) names << spec.name << suffix << "\n";
  }
  return names.good() ? 0 : 1;
}
