#include "worker/host/hardware.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "worker/isa/isa_support.h"

namespace loopfleet::worker {
namespace {

class HardwareTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            ("loopfleet_hardware_" + std::to_string(::getpid()));
    sources_ = {.proc = root_ / "proc", .sys = root_ / "sys"};
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  struct Cache {
    int index;
    const char* level;
    const char* type;
    const char* size;
  };
  void WriteCache(int core, const Cache& of) {
    const auto cache = sources_.sys / "devices/system/cpu" / ("cpu" + std::to_string(core)) /
                       "cache" / ("index" + std::to_string(of.index));
    Write(cache / "level", std::string(of.level) + "\n");
    Write(cache / "type", std::string(of.type) + "\n");
    Write(cache / "size", std::string(of.size) + "\n");
  }
  // A host of `cores` processors of one model, without threads beside each other.
  void WriteProcessors(int cores, const std::string& identity) {
    std::string cpuinfo;
    for (int i = 0; i < cores; ++i) {
      const std::string number = std::to_string(i);
      cpuinfo += "processor : " + number + "\n" + identity + "core id : " + number + "\n\n";
    }
    Write(sources_.proc / "cpuinfo", cpuinfo);
  }
  std::string ClassOf(int core) { return ProbeHardware(core, sources_).value().hardware_class; }
  std::filesystem::path root_;
  HardwareSources sources_;
};

TEST_F(HardwareTest, ReadsWhatLinuxSays) {
  std::string cpuinfo;
  for (int i = 0; i < 4; ++i) {  // two cores with two threads each
    cpuinfo +=
        "processor\t: " + std::to_string(i) +
        "\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Some CPU "
        "@ 2.50GHz\nstepping\t: 7\nmicrocode\t: 0x1\ncpu MHz\t\t: 2499.998\nphysical id\t: 0\n"
        "core id\t\t: " +
        std::to_string(i / 2) + "\n\n";
  }
  Write(sources_.proc / "cpuinfo", cpuinfo);
  Write(sources_.proc / "meminfo", "MemTotal:       24689884 kB\nMemFree: 1 kB\n");
  WriteCache(0, {0, "1", "Data", "32K"});
  WriteCache(0, {1, "1", "Instruction", "64K"});
  WriteCache(0, {2, "2", "Unified", "1024K"});
  WriteCache(0, {3, "3", "Unified", "36M"});
  const HardwareFacts facts = ProbeHardware(0, sources_).value();
  EXPECT_FALSE(facts.host.empty());
  sources_.host = "node-7";
  EXPECT_EQ(ProbeHardware(0, sources_).value().host, "node-7");
  EXPECT_EQ(facts.model, "Some CPU @ 2.50GHz");
  EXPECT_EQ(facts.microcode, "0x1");
  EXPECT_DOUBLE_EQ(facts.clock_mhz, 2499.998);
  EXPECT_EQ(facts.physical_cores, 2U);
  EXPECT_EQ(facts.logical_cores, 4U);
  EXPECT_EQ(facts.l1d_bytes, 32U << 10);
  EXPECT_EQ(facts.l2_bytes, 1024U << 10);
  EXPECT_EQ(facts.l3_bytes, 36U << 20);
  EXPECT_EQ(facts.memory_bytes, 24689884ULL << 10);
  EXPECT_NE(facts.hardware_class.find("6.85.7"), std::string::npos) << facts.hardware_class;
  EXPECT_NE(facts.hardware_class.find("GenuineIntel"), std::string::npos);
}

constexpr const char* kIntel =
    "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 151\nmodel name : Some CPU\nstepping : 2\n";
constexpr const char* kAmd =
    "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 97\nmodel name : Some X3D\nstepping : 2\n";

// Stored results are looked up by this text.
TEST_F(HardwareTest, WhereAllCoresAreAlikeTheClassNamesNoCore) {
  WriteProcessors(2, kIntel);
  for (const int core : {0, 1}) {
    WriteCache(core, {0, "1", "Data", "32K"});
    WriteCache(core, {1, "1", "Instruction", "64K"});
    WriteCache(core, {2, "2", "Unified", "1024K"});
    WriteCache(core, {3, "3", "Unified", "36M"});
  }
  const std::string expected = "cpu:GenuineIntel:6.151.2:Some CPU:" + std::string(HostIsa().name) +
                               ":2c2t:l1d=32K:l2=1024K:l3=36864K";
  EXPECT_EQ(ClassOf(0), expected);
  EXPECT_EQ(ClassOf(1), expected);
}

TEST_F(HardwareTest, TheClassOfAHybridHostNamesTheKindOfTheTimedCore) {
  WriteProcessors(4, kIntel);
  Write(sources_.sys / "devices/cpu_core/cpus", "0-1\n");
  Write(sources_.sys / "devices/cpu_atom/cpus", "2-3\n");
  for (const int core : {0, 1, 2, 3}) {
    WriteCache(core, {0, "1", "Data", core < 2 ? "48K" : "32K"});
    WriteCache(core, {1, "2", "Unified", core < 2 ? "1280K" : "2048K"});
    WriteCache(core, {2, "3", "Unified", "30M"});
  }
  const std::string start =
      "cpu:GenuineIntel:6.151.2:Some CPU:" + std::string(HostIsa().name) + ":4c4t:";
  EXPECT_EQ(ClassOf(1), start + "l1d=48K:l2=1280K:l3=30720K:core");
  EXPECT_EQ(ClassOf(3), start + "l1d=32K:l2=2048K:l3=30720K:atom");
  EXPECT_EQ(ProbeHardware(3, sources_).value().l1d_bytes, 32U << 10);
  std::filesystem::remove_all(sources_.sys / "devices/cpu_atom");  // switched off
  Write(sources_.sys / "devices/cpu_core/cpus", "0-3\n");
  EXPECT_EQ(ClassOf(1), start + "l1d=48K:l2=1280K:l3=30720K");
}

TEST_F(HardwareTest, TheClassHasTheCachesOfTheTimedCore) {
  WriteProcessors(4, kAmd);
  for (const int core : {0, 1, 2, 3}) {  // two core complexes, the first with more cache
    WriteCache(core, {0, "1", "Data", "32K"});
    WriteCache(core, {1, "2", "Unified", "1024K"});
    WriteCache(core, {2, "3", "Unified", core < 2 ? "96M" : "32M"});
  }
  const std::string start =
      "cpu:AuthenticAMD:25.97.2:Some X3D:" + std::string(HostIsa().name) + ":4c4t:";
  EXPECT_EQ(ClassOf(0), start + "l1d=32K:l2=1024K:l3=98304K");
  EXPECT_EQ(ClassOf(1), ClassOf(0));
  EXPECT_EQ(ClassOf(3), start + "l1d=32K:l2=1024K:l3=32768K");
}

// AArch64 with big and little cores: the kinds are different parts.
TEST_F(HardwareTest, TheModelIsThatOfTheTimedCore) {
  Write(sources_.proc / "cpuinfo",
        "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd05\n\n"
        "processor : 1\nCPU implementer : 0x41\nCPU part : 0xd0a\n");
  EXPECT_EQ(ProbeHardware(0, sources_).value().model, "implementer 0x41 part 0xd05");
  EXPECT_EQ(ProbeHardware(1, sources_).value().model, "implementer 0x41 part 0xd0a");
  EXPECT_EQ(ProbeHardware(1, sources_).value().hardware_class.find("cpu:0x41:0xd0a."), 0U);
}

TEST_F(HardwareTest, MemoryIsWhatTheControlGroupsAllow) {
  Write(sources_.proc / "cpuinfo", "processor : 0\n");
  Write(sources_.proc / "meminfo", "MemTotal:       8388608 kB\n");
  Write(sources_.proc / "self/cgroup", "0::/worker.service\n");
  Write(sources_.sys / "fs/cgroup/worker.service/memory.max", "1073741824\n");
  EXPECT_EQ(ProbeHardware(0, sources_).value().memory_bytes, 1ULL << 30);
}

TEST_F(HardwareTest, WhatTheHostDoesNotSayStaysEmpty) {
  Write(sources_.proc / "cpuinfo", "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n");
  const HardwareFacts facts = ProbeHardware(0, sources_).value();
  EXPECT_EQ(facts.model, "implementer 0x41 part 0xd0c");
  EXPECT_EQ(facts.physical_cores, 1U);
  EXPECT_EQ(facts.microcode, "");
  EXPECT_EQ(facts.l2_bytes, 0U);
  EXPECT_GT(facts.memory_bytes, 0U);  // the kernel says it without /proc
}

TEST_F(HardwareTest, NoProcessorIsAnError) { EXPECT_FALSE(ProbeHardware(0, sources_)); }

TEST_F(HardwareTest, ThisHostHasOne) {
  const HardwareFacts facts = ProbeHardware(0).value();
  EXPECT_GE(facts.logical_cores, 1U);
  EXPECT_FALSE(facts.isa.empty());
  EXPECT_GT(facts.memory_bytes, 0U);
}

}  // namespace
}  // namespace loopfleet::worker
