#include "monitoring/host/host_inspection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/unit/monitoring/host/fake_host.h"

namespace loopfleet::monitoring {
namespace {

const std::string kCpu = "devices/system/cpu/";

class HostInspectionTest : public testing::Test {
 protected:
  // A host without findings.
  void SetUp() override {
    host_.Sys(kCpu + "online", "0-3");
    host_.Sys(kCpu + "cpu3/cpufreq/scaling_governor", "performance");
    host_.Sys(kCpu + "intel_pstate/no_turbo", "1");
    host_.Sys(kCpu + "cpu3/topology/thread_siblings_list", "3");
    host_.Sys(kCpu + "cpu3/thermal_throttle/core_throttle_count", "0");
    host_.Sys("devices/system/clocksource/clocksource0/current_clocksource", "tsc");
    host_.Sys("devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm");
    host_.Sys("kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    host_.Proc("self/cgroup", "0::/");
    host_.Sys("fs/cgroup/cpu.max", "max 100000");
    host_.Sys("devices/system/node/node0/cpulist", "0-3");
    host_.Proc("loadavg", "0.05 0.10 0.10 1/300 1000");
    host_.Proc("stat", "cpu  1000 0 100 90000 10 0 5 0 0 0\ncpu0 1 2 3 4 5 6 7 8");
    host_.Proc("meminfo",
               "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB");
    host_.Proc("sys/kernel/numa_balancing", "0");
    host_.Proc("sys/kernel/nmi_watchdog", "0");
    host_.Proc("sys/kernel/seccomp/actions_avail", "kill_process kill_thread trap errno log allow");
  }

  Finding Check(const std::string& name) const {
    for (Finding& finding : InspectHost(host_.files())) {
      if (finding.check == name) return finding;
    }
    ADD_FAILURE() << "no check is called " << name;
    return {};
  }
  // It is said to be so bad, with a way to mend it.
  void Expect(const std::string& name, Severity severity, const std::string& what,
              const std::string& mend) const {
    const Finding finding = Check(name);
    EXPECT_EQ(NameOf(finding.severity), NameOf(severity)) << name << ": " << finding.what;
    EXPECT_NE(finding.what.find(what), std::string::npos) << finding.what;
    EXPECT_NE(finding.mend.find(mend), std::string::npos) << finding.mend;
    EXPECT_FALSE(finding.why.empty()) << name;
    // And nothing else is.
    for (const Finding& other : InspectHost(host_.files())) {
      if (other.check != name) {
        EXPECT_EQ(NameOf(other.severity), "good") << other.check << ": " << other.what;
      }
    }
  }

  FakeHost host_;
};

TEST_F(HostInspectionTest, AGoodHostIsGoodInEveryRespect) {
  std::set<std::string> names;
  for (const Finding& finding : InspectHost(host_.files())) {
    EXPECT_EQ(NameOf(finding.severity), "good") << finding.check << ": " << finding.what;
    EXPECT_FALSE(finding.what.empty());
    EXPECT_TRUE(finding.mend.empty()) << finding.check;
    EXPECT_TRUE(names.insert(finding.check).second) << finding.check << " stands twice";
  }
  EXPECT_EQ(names.size(), 16U);
}

TEST_F(HostInspectionTest, AHostThatSaysNothingIsUnknownAndNotGood) {
  const FakeHost mute;
  std::map<std::string, Severity> severities;
  for (const Finding& finding : InspectHost(mute.files())) {
    severities[finding.check] = finding.severity;
    EXPECT_NE(finding.severity, Severity::kProblem) << finding.check;
  }
  for (const char* check :
       {"cores", "governor", "turbo", "smt", "load", "cpu_quota", "clock_source", "memory"}) {
    EXPECT_EQ(severities[check], Severity::kUnknown) << check;
  }
}

TEST_F(HostInspectionTest, Governor) {
  host_.Sys(kCpu + "cpu3/cpufreq/scaling_governor", "powersave");
  host_.Sys(kCpu + "cpu0/cpufreq/scaling_governor", "performance");  // not the timing core
  Expect("governor", Severity::kProblem, "'powersave'", "scaling_governor");
}

TEST_F(HostInspectionTest, TurboOfEitherVendor) {
  host_.Sys(kCpu + "intel_pstate/no_turbo", "0");
  Expect("turbo", Severity::kNotice, "boosted", "no_turbo");
  host_.RemoveSys(kCpu + "intel_pstate");
  host_.Sys(kCpu + "cpufreq/boost", "1");
  Expect("turbo", Severity::kNotice, "boosted", "cpufreq/boost");
  host_.Sys(kCpu + "cpufreq/boost", "0");
  EXPECT_EQ(Check("turbo").severity, Severity::kGood);
}

TEST_F(HostInspectionTest, Smt) {
  host_.Sys(kCpu + "cpu3/topology/thread_siblings_list", "1,3");
  Expect("smt", Severity::kNotice, "processor 3 shares its core with 1", "smt/control");
}

TEST_F(HostInspectionTest, Load) {
  host_.Proc("loadavg", "2.75 1.0 1.0 3/300 1000");
  Expect("load", Severity::kNotice, "2.75", "top");
}

TEST_F(HostInspectionTest, Steal) {
  host_.Proc("stat", "cpu  1000 0 100 90000 10 0 5 5000 0 0");
  Expect("steal", Severity::kProblem, "5.2 %", "another machine");
}

TEST_F(HostInspectionTest, CpuQuota) {
  EXPECT_EQ(Check("cpu_quota").severity, Severity::kGood);
  host_.Sys("fs/cgroup/cpu.max", "150000 100000");
  Expect("cpu_quota", Severity::kProblem, "150000 of each 100000 us", "--cpuset-cpus");
  // A quota for as many processors as the group has.
  host_.Sys("fs/cgroup/cpuset.cpus.effective", "2");
  EXPECT_EQ(Check("cpu_quota").severity, Severity::kGood);
  host_.Sys("fs/cgroup/cpuset.cpus.effective", "2-3");
  EXPECT_EQ(Check("cpu_quota").severity, Severity::kProblem);
}

TEST_F(HostInspectionTest, TheQuotaOfAServiceIsThatOfItsGroupOrOneAround) {
  host_.RemoveSys("fs/cgroup/cpu.max");  // the root has none
  host_.Proc("self/cgroup", "0::/fleet.slice/worker.service");
  EXPECT_EQ(Check("cpu_quota").severity, Severity::kUnknown);
  host_.Sys("fs/cgroup/fleet.slice/worker.service/cgroup.procs", "1");
  EXPECT_EQ(Check("cpu_quota").severity, Severity::kGood) << "nothing limits processor time";
  host_.Sys("fs/cgroup/fleet.slice/worker.service/cpu.max", "max 100000");
  host_.Sys("fs/cgroup/fleet.slice/cpu.max", "150000 100000");
  Expect("cpu_quota", Severity::kProblem, "/sys/fs/cgroup/fleet.slice", "AllowedCPUs=");
  host_.Sys("fs/cgroup/fleet.slice/cpu.max", "400000 100000");
  EXPECT_EQ(Check("cpu_quota").severity, Severity::kGood) << "there are four processors";
}

TEST_F(HostInspectionTest, TheQuotaOfVersionOneIsInTwoFiles) {
  host_.Proc("self/cgroup", "4:memory:/box\n3:cpuacct,cpu:/box/job\n0::/");
  const std::string box = "fs/cgroup/cpu/box/";
  host_.Sys(box + "job/cpu.cfs_quota_us", "-1");
  host_.Sys(box + "job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(Check("cpu_quota").severity, Severity::kGood);
  host_.Sys(box + "cpu.cfs_quota_us", "50000");
  host_.Sys(box + "cpu.cfs_period_us", "100000");
  Expect("cpu_quota", Severity::kProblem, "50000 of each 100000 us", "--cpuset-cpus");
}

TEST_F(HostInspectionTest, ClockSource) {
  const std::string folder = "devices/system/clocksource/clocksource0/";
  host_.Sys(folder + "current_clocksource", "hpet");
  Expect("clock_source", Severity::kProblem, "'hpet'", "echo tsc");
  host_.Sys(folder + "available_clocksource", "hpet acpi_pm");
  Expect("clock_source", Severity::kProblem, "'hpet'", "dmesg");
}

TEST_F(HostInspectionTest, MemoryAndSwap) {
  host_.Proc("meminfo",
             "MemTotal: 16000000 kB\nMemAvailable: 900000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB");
  Expect("memory", Severity::kProblem, "0.9 GiB", "free -h");
  host_.Proc("meminfo", "MemAvailable: 12000000 kB\nSwapTotal: 4000000 kB\nSwapFree: 1000000 kB");
  Expect("swap", Severity::kNotice, "2.9 GiB are swapped out", "swapoff");
  host_.Proc("meminfo", "MemAvailable: 12000000 kB\nSwapTotal: 4000000 kB\nSwapFree: 4000000 kB");
  EXPECT_EQ(Check("swap").severity, Severity::kGood);
}

TEST_F(HostInspectionTest, PagesNodesWatchdogAndHeat) {
  host_.Sys("kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
  Expect("huge_pages", Severity::kNotice, "off", "echo madvise");
  host_.Sys("kernel/mm/transparent_hugepage/enabled", "[always] madvise never");
  host_.Proc("sys/kernel/numa_balancing", "1");
  EXPECT_EQ(Check("numa_balancing").severity, Severity::kGood);  // one node
  host_.Sys("devices/system/node/node1/cpulist", "4-7");
  Expect("numa_balancing", Severity::kNotice, "NUMA", "numa_balancing=0");
  host_.Proc("sys/kernel/numa_balancing", "0");
  host_.Proc("sys/kernel/nmi_watchdog", "1");
  Expect("watchdog", Severity::kNotice, "watchdog", "nmi_watchdog=0");
  host_.Proc("sys/kernel/nmi_watchdog", "0");
  host_.Sys(kCpu + "cpu3/thermal_throttle/core_throttle_count", "17");
  Expect("heat", Severity::kNotice, "17 times", "fans");
}

TEST_F(HostInspectionTest, Sandbox) {
  host_.Proc("sys/kernel/seccomp/actions_avail", "log allow");
  Expect("sandbox", Severity::kNotice, "only: log allow", "SECCOMP");
}

TEST_F(HostInspectionTest, AGpuWantsItsDriver) {
  host_.Sys("bus/pci/devices/0000:01:00.1/vendor", "0x10de");
  host_.Sys("bus/pci/devices/0000:01:00.1/class", "0x040300");  // its sound device
  EXPECT_EQ(Check("driver").severity, Severity::kGood);
  host_.Sys("bus/pci/devices/0000:01:00.0/vendor", "0x10de");
  host_.Sys("bus/pci/devices/0000:01:00.0/class", "0x030000");
  Expect("driver", Severity::kProblem, "no driver", "nvidia-driver");
  host_.Proc("driver/nvidia/version", "NVRM version: 580.95.05\nGCC version: 12");
  EXPECT_NE(Check("driver").what.find("580.95.05"), std::string::npos);
}

TEST_F(HostInspectionTest, OneCore) {
  host_.Sys(kCpu + "online", "3");
  Expect("cores", Severity::kProblem, "one processor", "two cores");
}

// Only processors that a worker may use count.
TEST_F(HostInspectionTest, OneCoreOfWhatMayBeUsed) {
  const auto cores = [&](const std::vector<int>& processors) {
    return InspectHost(host_.files(), {.processors = processors}).front();
  };
  EXPECT_EQ(cores({2, 3}).severity, Severity::kGood);
  EXPECT_EQ(cores({3}).severity, Severity::kProblem);
  EXPECT_NE(cores({3}).what.find("one processor"), std::string::npos) << cores({3}).what;
  for (const char* cpu : {"cpu2", "cpu3"}) {
    host_.Sys(kCpu + cpu + "/topology/thread_siblings_list", "2-3");
  }
  EXPECT_EQ(cores({2, 3}).check, "cores");
  EXPECT_EQ(cores({2, 3}).severity, Severity::kProblem);
  EXPECT_NE(cores({2, 3}).what.find("processors 2, 3 are its threads"), std::string::npos)
      << cores({2, 3}).what;
  EXPECT_EQ(cores({1, 2, 3}).severity, Severity::kGood);
  // No other core is left.
  const auto findings = InspectHost(host_.files(), {.processors = {{2, 3}}});
  const auto smt = std::ranges::find(findings, "smt", &Finding::check);
  EXPECT_NE(smt->why.find("no other core"), std::string::npos) << smt->why;
}

TEST_F(HostInspectionTest, AnotherCoreCanBeAskedFor) {
  host_.Sys(kCpu + "cpu1/cpufreq/scaling_governor", "ondemand");
  host_.Sys(kCpu + "cpu1/topology/thread_siblings_list", "1");
  const auto findings = InspectHost(host_.files(), {.core = 1});
  const auto governor = std::ranges::find(findings, "governor", &Finding::check);
  EXPECT_NE(governor->what.find("processor 1 is 'ondemand'"), std::string::npos) << governor->what;
}

}  // namespace
}  // namespace loopfleet::monitoring
