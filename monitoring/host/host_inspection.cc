#include "monitoring/host/host_inspection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "common/base/check.h"
#include "common/base/control_group.h"
#include "monitoring/host/core_plan.h"

namespace loopfleet::monitoring {
namespace {

constexpr double kKibi = 1024;
constexpr double kGibi = kKibi * kKibi * kKibi;

struct Host {
  const HostFiles& files;
  std::vector<int> cpus;    // usable by a worker
  int core = 0;             // times kernels
  std::vector<int> others;  // run the rest of the worker; empty: only one core is usable

  std::string Cpu(std::string_view file) const {
    return fmt::format("devices/system/cpu/cpu{}/{}", core, file);
  }
};

Finding Good(std::string what) { return {.severity = Severity::kGood, .what = std::move(what)}; }
Finding Unknown(std::string what, std::string why) {
  return {.severity = Severity::kUnknown, .what = std::move(what), .why = std::move(why)};
}

std::vector<int> Online(const HostFiles& files) {
  std::vector<int> cpus = ParseCpuList(files.Sys("devices/system/cpu/online").value_or(""));
  if (!cpus.empty()) return cpus;
  std::istringstream lines(files.Proc("cpuinfo").value_or(""));  // no sysfs, as in a container
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("processor")) cpus.push_back(static_cast<int>(cpus.size()));
  }
  return cpus;
}

// The lines "MemAvailable:  123 kB" of /proc/meminfo, in bytes.
std::map<std::string, double> Memory(const HostFiles& files) {
  std::map<std::string, double> memory;
  std::istringstream lines(files.Proc("meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    memory[line.substr(0, colon)] = std::strtod(line.c_str() + colon + 1, nullptr) * kKibi;
  }
  return memory;
}

Finding Cores(const Host& host) {
  if (host.cpus.empty()) {
    return Unknown("the host does not say how many processors it has",
                   "the worker takes what the system lets it run on");
  }
  if (host.others.empty()) {
    return {
        .severity = Severity::kProblem,
        .what = host.cpus.size() == 1
                    ? "there is one processor to use"
                    : fmt::format("there is one core to use: processors {} are its threads",
                                  fmt::join(host.cpus, ", ")),
        .why = "kernels are timed on the core that also compiles, verifies and serves the network",
        .mend = "use a machine with two cores or more, or allow this one more of them"};
  }
  return Good(
      fmt::format("{} processors; kernels are timed on number {}", host.cpus.size(), host.core));
}

Finding Governor(const Host& host) {
  const auto governor = host.files.Sys(host.Cpu("cpufreq/scaling_governor"));
  if (!governor) {
    return Unknown("the host does not say how the clock is governed",
                   "usual for a virtual machine: its host governs. Times are stated at a reference "
                   "clock that the worker measures");
  }
  if (*governor == "performance") return Good("the governor is 'performance'");
  return {
      .severity = Severity::kProblem,
      .what = fmt::format("the governor of processor {} is '{}'", host.core, *governor),
      .why = "the clock rises while a kernel is timed; the first samples are slower than the last",
      .mend = "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"};
}

Finding Turbo(const Host& host) {
  const auto no_turbo = host.files.SysNumber("devices/system/cpu/intel_pstate/no_turbo");
  const auto boost = host.files.SysNumber("devices/system/cpu/cpufreq/boost");
  if (!no_turbo && !boost) {
    return Unknown("the host does not say whether the clock is boosted",
                   "a boosted clock depends on heat and on what other cores do");
  }
  const bool is_on = no_turbo ? *no_turbo == 0 : *boost != 0;
  if (!is_on) return Good("the clock is not boosted");
  return {.severity = Severity::kNotice,
          .what = "the clock is boosted",
          .why =
              "it depends on heat and on what other cores do; loopfleet measures it beside each "
              "kernel and states times at a reference clock, but memory does not follow it",
          .mend = no_turbo ? "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"
                           : "echo 0 > /sys/devices/system/cpu/cpufreq/boost"};
}

Finding Smt(const Host& host) {
  const auto siblings = host.files.Sys(host.Cpu("topology/thread_siblings_list"));
  if (!siblings) {
    return Unknown("the host does not say which processors share a core",
                   "what runs on the other thread of a core takes half of it");
  }
  std::vector<int> others = ParseCpuList(*siblings);
  std::erase(others, host.core);
  if (others.empty()) return Good("no other thread shares the timing core");
  return {.severity = Severity::kNotice,
          .what = fmt::format("processor {} shares its core with {}", host.core,
                              fmt::join(others, ", ")),
          .why = host.others.empty() && host.cpus.size() > 1
                     ? "compilers and verifiers run there, for there is no other core to use"
                     : "workers leave those idle, but other programs do not know that",
          .mend = "echo off > /sys/devices/system/cpu/smt/control"};
}

Finding Load(const Host& host) {
  const auto load = host.files.ProcNumber("loadavg");
  if (!load) return Unknown("the host does not tell its load", "others may use the timing core");
  constexpr double kQuiet = 0.5;
  if (*load < kQuiet) return Good(fmt::format("the load of the last minute is {:.2f}", *load));
  return {.severity = Severity::kNotice,
          .what = fmt::format("the load of the last minute is {:.2f}", *load),
          .why =
              "others compute here (a busy worker does, too); samples beside which something ran "
              "are found and taken again, which costs time, and precision if it never ends",
          .mend = "top -b -n 1 | head -n 15    # then move or stop what does not belong here"};
}

Finding Steal(const Host& host) {
  // "cpu  user nice system idle iowait irq softirq steal ..."
  std::istringstream line(host.files.Proc("stat").value_or(""));
  std::string name;
  std::array<double, 8> ticks{};
  line >> name;
  for (double& part : ticks) line >> part;
  double sum = 0;
  for (const double part : ticks) sum += part;
  if (name != "cpu" || !line || sum <= 0) {
    return Unknown("the host does not tell what its hypervisor takes", "");
  }
  constexpr double kMuch = 0.01;
  const double stolen = ticks[7] / sum;
  if (stolen < kMuch) {
    return Good(fmt::format("the hypervisor took {:.2f} % of the time since boot", 100 * stolen));
  }
  return {.severity = Severity::kProblem,
          .what = fmt::format("the hypervisor took {:.1f} % of the time since boot", 100 * stolen),
          .why = "other guests use the same processors, and nothing in here can tell when",
          .mend = "ask for dedicated processors, or use another machine"};
}

// What the processes of a control group may use in each period, in microseconds.
struct CpuTime {
  double time = std::numeric_limits<double>::infinity();  // as much as there is
  double period = 0;
};
// nullopt: the group does not say.
std::optional<CpuTime> CpuTimeOf(const ControlGroup& group, const HostFiles& files) {
  CpuTime allowed;
  if (group.version == 2) {
    const auto text = files.Sys(group.directory + "/cpu.max");  // "150000 100000", "max 100000"
    if (!text) return std::nullopt;
    if (!text->starts_with("max")) std::istringstream(*text) >> allowed.time >> allowed.period;
    return allowed;
  }
  const auto time = files.SysNumber(group.directory + "/cpu.cfs_quota_us");  // -1: no limit
  if (!time) return std::nullopt;
  if (*time >= 0) allowed.time = *time;
  allowed.period = files.SysNumber(group.directory + "/cpu.cfs_period_us").value_or(0);
  return allowed;
}

Finding CpuQuota(const Host& host) {
  bool is_known = false;
  for (const ControlGroup& group :
       ControlGroupsOf(host.files.Proc("self/cgroup").value_or(""), "cpu")) {
    const auto allowed = CpuTimeOf(group, host.files);
    // Where nothing limits processor time, a group need not have a file for it.
    is_known = is_known || allowed || host.files.Sys(group.directory + "/cgroup.procs");
    if (!allowed || std::isinf(allowed->time)) continue;
    // Kubernetes' static CPU manager assigns whole processors and a quota for as many.
    const auto own = host.files.Sys(group.directory + "/cpuset.cpus.effective");
    const std::size_t processors = own ? ParseCpuList(*own).size() : host.cpus.size();
    if (processors > 0 && allowed->period > 0 &&
        allowed->time >= allowed->period * static_cast<double>(processors)) {
      continue;
    }
    return {.severity = Severity::kProblem,
            .what = fmt::format(
                "a control group limits processor time to {:.0f} of each {:.0f} us (/sys/{})",
                allowed->time, allowed->period, group.directory),
            .why =
                "the system stops the kernel in the middle of a timed batch once the share is "
                "used up",
            .mend =
                "give whole processors instead of a share: docker run --cpuset-cpus, "
                "Kubernetes' static CPU manager, systemd's AllowedCPUs="};
  }
  if (is_known) return Good("no control group allows less time than its processors have");
  return Unknown("the host does not say whether a control group limits processor time",
                 "the system stops kernels once their share is used up");
}

Finding ClockSource(const Host& host) {
  const std::string folder = "devices/system/clocksource/clocksource0/";
  const auto current = host.files.Sys(folder + "current_clocksource");
  if (!current) return Unknown("the clock source is unknown", "");
  constexpr std::array<std::string_view, 4> kQuick = {"tsc", "arch_sys_counter", "kvm-clock",
                                                      "hyperv_clocksource_tsc_page"};
  if (std::ranges::find(kQuick, *current) != kQuick.end()) {
    return Good(fmt::format("the clock source is '{}'", *current));
  }
  const bool has_tsc = host.files.Sys(folder + "available_clocksource").value_or("").find("tsc") !=
                       std::string::npos;
  return {
      .severity = Severity::kProblem,
      .what = fmt::format("the clock source is '{}'", *current),
      .why = "reading it takes a microsecond or more, which counts as time of the kernel",
      .mend = has_tsc
                  ? "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"
                  : "see `dmesg | grep -i tsc` for why there is no 'tsc'"};
}

Finding FreeMemory(const Host& host) {
  auto memory = Memory(host.files);
  if (!memory.contains("MemAvailable")) return Unknown("the host does not tell its memory", "");
  constexpr double kEnough = 2 * kGibi;
  const double gibibytes = memory["MemAvailable"] / kGibi;
  if (memory["MemAvailable"] >= kEnough) {
    return Good(fmt::format("{:.1f} GiB of memory are available", gibibytes));
  }
  return {
      .severity = Severity::kProblem,
      .what = fmt::format("{:.1f} GiB of memory are available", gibibytes),
      .why =
          "tensors of a job exist several times while it is verified; jobs will end with RUN_OOM",
      .mend = "free -h; ps aux --sort=-rss | head    # then stop what takes it"};
}

Finding Swap(const Host& host) {
  auto memory = Memory(host.files);
  const double used = memory["SwapTotal"] - memory["SwapFree"];
  if (memory["SwapTotal"] <= 0) return Good("there is no swap");
  if (used <= 0) return Good("the swap is empty");
  return {.severity = Severity::kNotice,
          .what = fmt::format("{:.1f} GiB are swapped out", used / kGibi),
          .why = "a kernel whose data come back from disk is slower by orders of magnitude",
          .mend = "swapoff -a"};
}

Finding HugePages(const Host& host) {
  const auto enabled = host.files.Sys("kernel/mm/transparent_hugepage/enabled");
  if (!enabled) return Unknown("the host does not say whether it has huge pages", "");
  if (enabled->find("[never]") == std::string::npos) return Good("huge pages are available");
  return {.severity = Severity::kNotice,
          .what = "transparent huge pages are off",
          .why = "large tensors miss the TLB, differently with each run's placement in memory",
          .mend = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding NumaBalancing(const Host& host) {
  const auto nodes = host.files.SysNames("devices/system/node");
  const auto count = std::ranges::count_if(
      nodes, [](const std::string& name) { return name.starts_with("node"); });
  if (host.files.ProcNumber("sys/kernel/numa_balancing").value_or(0) == 0 || count < 2) {
    return Good("the kernel does not move memory between nodes");
  }
  return {
      .severity = Severity::kNotice,
      .what = "the kernel moves memory between NUMA nodes by itself",
      .why = "it unmaps pages now and then to see who uses them; the timed kernel pays for that",
      .mend = "sysctl -w kernel.numa_balancing=0"};
}

Finding Watchdog(const Host& host) {
  if (host.files.ProcNumber("sys/kernel/nmi_watchdog").value_or(0) == 0) {
    return Good("no watchdog interrupts the cores");
  }
  return {.severity = Severity::kNotice,
          .what = "the kernel's NMI watchdog is on",
          .why = "it interrupts every core regularly",
          .mend = "sysctl -w kernel.nmi_watchdog=0"};
}

Finding Heat(const Host& host) {
  const auto count = host.files.SysNumber(host.Cpu("thermal_throttle/core_throttle_count"));
  if (!count) return Unknown("the host does not say whether heat has slowed it down", "");
  if (*count == 0) return Good("heat has not slowed the timing core down since boot");
  return {
      .severity = Severity::kNotice,
      .what = fmt::format("heat has slowed the timing core down {:.0f} times since boot", *count),
      .why = "the clock falls under load; see loopfleet_worker_throttle_events_total for when",
      .mend = "sensors    # then look at fans, dust, the air in front of the machine"};
}

Finding Sandbox(const Host& host) {
  const auto actions = host.files.Proc("sys/kernel/seccomp/actions_avail");
  if (!actions) {
    return {.severity = Severity::kNotice,
            .what = "the kernel offers no filter of system calls (seccomp)",
            .why =
                "kernels of jobs are kept in processes of their own, with limits, and no further; "
                "`--require-sandbox full` would refuse to run",
            .mend = "boot a kernel with CONFIG_SECCOMP_FILTER"};
  }
  if (actions->find("trap") != std::string::npos || actions->find("kill") != std::string::npos) {
    return Good("system calls of kernels can be filtered (seccomp)");
  }
  return {.severity = Severity::kNotice,
          .what = fmt::format("seccomp offers only: {}", *actions),
          .why = "kernels of jobs cannot be kept from making system calls",
          .mend = "boot a kernel with CONFIG_SECCOMP_FILTER"};
}

bool IsNvidiaDisplay(const HostFiles& files, const std::string& device) {
  constexpr std::string_view kNvidia = "0x10de";
  constexpr std::string_view kDisplay = "0x03";
  const std::string folder = "bus/pci/devices/" + device;
  return files.Sys(folder + "/vendor") == kNvidia &&
         files.Sys(folder + "/class").value_or("").starts_with(kDisplay);
}

Finding Driver(const Host& host) {
  const auto devices = host.files.SysNames("bus/pci/devices");
  const bool has_gpu = std::ranges::any_of(
      devices, [&](const std::string& device) { return IsNvidiaDisplay(host.files, device); });
  const auto version = host.files.Proc("driver/nvidia/version");
  if (version) {
    return Good(fmt::format("NVIDIA driver: {}", version->substr(0, version->find('\n'))));
  }
  if (!has_gpu) return Good("there is no NVIDIA GPU, and no driver is needed");
  return {.severity = Severity::kProblem,
          .what = "there is an NVIDIA GPU and no driver for it is loaded",
          .why = "a worker for it cannot start",
          .mend = "apt-get install nvidia-driver && reboot"};
}

using Check = std::pair<const char*, Finding (*)(const Host&)>;
constexpr std::array<Check, 16> kChecks = {{
    {"cores", Cores},
    {"governor", Governor},
    {"turbo", Turbo},
    {"smt", Smt},
    {"load", Load},
    {"steal", Steal},
    {"cpu_quota", CpuQuota},
    {"clock_source", ClockSource},
    {"memory", FreeMemory},
    {"swap", Swap},
    {"huge_pages", HugePages},
    {"numa_balancing", NumaBalancing},
    {"watchdog", Watchdog},
    {"heat", Heat},
    {"sandbox", Sandbox},
    {"driver", Driver},
}};

}  // namespace

std::string_view NameOf(Severity severity) {
  switch (severity) {
    case Severity::kGood: return "good";
    case Severity::kUnknown: return "unknown";
    case Severity::kNotice: return "notice";
    case Severity::kProblem: return "problem";
  }
  LF_CHECK(false, "severity {}", static_cast<int>(severity));
}

std::vector<Finding> InspectHost(const HostFiles& files, const InspectionOptions& options) {
  Host host{.files = files, .cpus = options.processors ? *options.processors : Online(files)};
  CorePlan plan = PlanCores(host.cpus, files, options.core);
  host.core = plan.slot_core;
  host.others = std::move(plan.others);
  std::vector<Finding> findings;
  for (const auto& [name, check] : kChecks) {
    findings.push_back(check(host));
    findings.back().check = name;
  }
  return findings;
}

}  // namespace loopfleet::monitoring
