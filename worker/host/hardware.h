#pragma once
// What this host is, as its results will say: read once at start from /proc and /sys.

#include <filesystem>
#include <string>

#include "common/base/result.h"
#include "common/job/hardware_facts.h"

namespace loopfleet::worker {

// Where to read from: tests have roots of their own.
struct HardwareSources {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

// The widest vector instructions that this processor and operating system offer, by the names of
// HardwareFacts::isa.
std::string HostIsa();

// What the host does not say stays empty or 0; kSystem if it does not even say what processor it
// has.
Result<HardwareFacts> ProbeHardware(const HardwareSources& sources = {});

}  // namespace loopfleet::worker
