#include "worker/host/hardware.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/memory_limit.h"
#include "common/base/trim.h"
#include "monitoring/host/host_files.h"
#include "worker/host/cache_size.h"
#include "worker/isa/isa_support.h"

namespace loopfleet::worker {
namespace {

std::string FirstLine(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// One processor of /proc/cpuinfo.
using Processor = std::map<std::string, std::string>;

std::vector<Processor> ReadProcessors(const std::filesystem::path& file) {
  std::vector<Processor> processors;
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key(Trimmed(std::string_view(line).substr(0, colon)));
    if (key == "processor") processors.emplace_back();
    if (!processors.empty()) {
      processors.back()[key] = Trimmed(std::string_view(line).substr(colon + 1));
    }
  }
  return processors;
}

std::string ValueOf(const Processor& processor, const std::string& key) {
  const auto found = processor.find(key);
  return found == processor.end() ? "" : found->second;
}

std::uint32_t CountCores(const std::vector<Processor>& processors) {
  std::set<std::pair<std::string, std::string>> cores;
  for (const Processor& processor : processors) {
    const std::string core = ValueOf(processor, "core id");
    // Without core ids every processor counts as a core of its own.
    cores.emplace(ValueOf(processor, "physical id"),
                  core.empty() ? ValueOf(processor, "processor") : core);
  }
  return static_cast<std::uint32_t>(cores.size());
}

// The processor with that number; the first one if none has it.
const Processor& ProcessorOf(int core, const std::vector<Processor>& processors) {
  const auto found = std::ranges::find(processors, std::to_string(core), [](const Processor& of) {
    return ValueOf(of, "processor");
  });
  return found == processors.end() ? processors.front() : *found;
}

// "core" or "atom" (or "lowpower") on Intel's hybrid hosts, which have a performance monitor for
// each kind. "": all `processors` are of one kind.
std::string KindOfCore(int core, std::size_t processors, const std::filesystem::path& sys) {
  for (const char* const kind : {"core", "atom", "lowpower"}) {
    const std::vector<int> alike =
        monitoring::ParseCpuList(FirstLine(sys / fmt::format("devices/cpu_{}/cpus", kind)));
    if (std::ranges::find(alike, core) == alike.end()) continue;
    return alike.size() < processors ? kind : "";
  }
  return "";
}

// AArch64 has other names for them.
std::string VendorOf(const Processor& processor) {
  const std::string vendor = ValueOf(processor, "vendor_id");
  return vendor.empty() ? ValueOf(processor, "CPU implementer") : vendor;
}

std::string ModelNumbersOf(const Processor& processor) {
  if (ValueOf(processor, "cpu family").empty()) {
    return fmt::format("{}.{}.{}", ValueOf(processor, "CPU part"),
                       ValueOf(processor, "CPU variant"), ValueOf(processor, "CPU revision"));
  }
  return fmt::format("{}.{}.{}", ValueOf(processor, "cpu family"), ValueOf(processor, "model"),
                     ValueOf(processor, "stepping"));
}

void ReadCaches(const std::filesystem::path& directory, HardwareFacts& facts) {
  constexpr int kMostCaches = 16;
  for (int i = 0; i < kMostCaches; ++i) {
    const std::filesystem::path cache = directory / fmt::format("index{}", i);
    const std::string level = FirstLine(cache / "level");
    if (level.empty()) return;
    const std::uint64_t size = ParseCacheSize(FirstLine(cache / "size"));
    const bool holds_data = FirstLine(cache / "type") != "Instruction";
    if (level == "1" && holds_data) facts.l1d_bytes = size;
    if (level == "2") facts.l2_bytes = size;
    if (level == "3") facts.l3_bytes = size;
  }
}

}  // namespace

Result<HardwareFacts> ProbeHardware(int core, const HardwareSources& sources) {
  const std::vector<Processor> processors = ReadProcessors(sources.proc / "cpuinfo");
  if (processors.empty()) {
    return Fail(ErrorKind::kSystem,
                fmt::format("{} names no processor", (sources.proc / "cpuinfo").string()));
  }
  const Processor& timed = ProcessorOf(core, processors);
  HardwareFacts facts;
  facts.device = DeviceKind::kCpu;
  facts.model = ValueOf(timed, "model name");
  if (facts.model.empty()) {  // AArch64 gives numbers only
    facts.model = fmt::format("implementer {} part {}", ValueOf(timed, "CPU implementer"),
                              ValueOf(timed, "CPU part"));
  }
  facts.isa = HostIsa().name;
  facts.microcode = ValueOf(timed, "microcode");
  facts.clock_mhz = std::strtod(ValueOf(timed, "cpu MHz").c_str(), nullptr);
  facts.physical_cores = CountCores(processors);
  facts.logical_cores = static_cast<std::uint32_t>(processors.size());
  ReadCaches(sources.sys / fmt::format("devices/system/cpu/cpu{}/cache", core), facts);
  facts.memory_bytes = ReadMemoryLimit(sources.proc, sources.sys).bytes();
  utsname system{};
  ::uname(&system);
  facts.host = sources.host.empty() ? system.nodename : sources.host;
  facts.kernel = fmt::format("{} {}", system.sysname, system.release);
  facts.hardware_class =
      CpuClassOf(facts, {.vendor = VendorOf(timed),
                         .family_model_stepping = ModelNumbersOf(timed),
                         .core_kind = KindOfCore(core, processors.size(), sources.sys)});
  return facts;
}

}  // namespace loopfleet::worker
