#pragma once
// The hardware of this host, as its results state it. Read once at start from /proc and /sys.

#include <filesystem>
#include <string>

#include "common/base/result.h"
#include "common/job/hardware_facts.h"

namespace loopfleet::worker {

// Where to read from; tests use other roots.
struct HardwareSources {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
  std::string host = {};  // the host's name; "": the system's
};

// `core`: the processor that times kernels. Model, caches and class are its own: the cores of one
// host may differ. What the host does not say stays empty or 0. kSystem: the host names no
// processor.
Result<HardwareFacts> ProbeHardware(int core, const HardwareSources& sources = {});

}  // namespace loopfleet::worker
