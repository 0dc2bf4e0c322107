#pragma once
// HostInspection: finds conditions of this host that degrade measurements, why, and which command
// fixes them. Only reads files; changes nothing. For `loopfleet doctor`, and for workers, which
// report them to their coordinator.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitoring/host/host_files.h"

namespace loopfleet::monitoring {

enum class Severity : std::uint8_t {
  kGood,     // as it should be
  kUnknown,  // the host does not tell
  kNotice,   // lowers the grade of measurements, or may
  kProblem,  // figures of this host should not be compared with others until it is fixed
};
std::string_view NameOf(Severity severity);  // "good", "unknown", "notice", "problem"

struct Finding {
  std::string check;  // its name, stable: "governor"
  Severity severity = Severity::kGood;
  std::string what;  // a sentence
  std::string why;   // its effect on figures; "" for kGood
  std::string mend;  // a command for a root shell, or what to do; "": nothing to do
};

struct InspectionOptions {
  // Processors that a worker may use; none: all that are online.
  std::optional<std::vector<int>> processors;
  // The processor that times kernels; none: the last one, as workers choose it.
  std::optional<int> core;
};

// One finding for each check, always in the same order.
std::vector<Finding> InspectHost(const HostFiles& files, const InspectionOptions& options = {});

}  // namespace loopfleet::monitoring
