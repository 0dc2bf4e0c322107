#include "monitoring/host/core_plan.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

namespace loopfleet::monitoring {

CorePlan PlanCores(const std::vector<int>& processors, const HostFiles& files,
                   std::optional<int> slot_core) {
  CorePlan plan{.slot_core = slot_core.value_or(processors.empty() ? 0 : processors.back())};
  std::vector<int> further;
  std::set<int> taken;  // threads of cores already planned
  for (const int thread : ThreadsOfCore(plan.slot_core, files)) taken.insert(thread);
  const std::set<int> of_the_slot = taken;
  for (const int processor : processors) {
    if (of_the_slot.contains(processor)) continue;
    if (taken.contains(processor)) {
      further.push_back(processor);
      continue;
    }
    plan.others.push_back(processor);
    for (const int thread : ThreadsOfCore(processor, files)) taken.insert(thread);
  }
  plan.other_cores = plan.others.size();
  plan.others.insert(plan.others.end(), further.begin(), further.end());
  return plan;
}

std::vector<int> ThreadsOfCore(int processor, const HostFiles& files) {
  const auto siblings =
      files.Sys(fmt::format("devices/system/cpu/cpu{}/topology/thread_siblings_list", processor));
  std::vector<int> threads = ParseCpuList(siblings.value_or(""));
  if (std::ranges::find(threads, processor) == threads.end()) threads.push_back(processor);
  return threads;
}

Result<std::vector<int>> AllowedProcessors() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return Fail(ErrorKind::kSystem, fmt::format("sched_getaffinity: {}", std::strerror(errno)));
  }
  std::vector<int> processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(static_cast<std::size_t>(processor), &allowed)) processors.push_back(processor);
  }
  return processors;
}

}  // namespace loopfleet::monitoring
