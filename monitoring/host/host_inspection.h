#pragma once
// HostInspection: what about this host spoils measurements, why, and which command mends it. Reads
// files only; changes nothing. For `loopfleet doctor`, and for workers, which tell their
// coordinator.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitoring/host/host_files.h"

namespace loopfleet::monitoring {

enum class Severity : std::uint8_t {
  kGood,     // as it should be
  kUnknown,  // the host does not say
  kNotice,   // costs figures some of their grade, or may
  kProblem,  // figures from here should not be compared with others before it is mended
};
std::string_view NameOf(Severity severity);  // "good", "unknown", "notice", "problem"

struct Finding {
  std::string check;  // its name, stable: "governor"
  Severity severity = Severity::kGood;
  std::string what;  // a sentence
  std::string why;   // what it does to figures; "" for kGood
  std::string mend;  // a command for root's shell, or what to do; "" where there is nothing to do
};

struct InspectionOptions {
  // That a worker may use; none: all that are online.
  std::optional<std::vector<int>> processors;
  // The core that kernels are timed on; none: the last one, as workers choose it.
  std::optional<int> core;
};

// One finding for each check, in the order of the table in docs/OPERATIONS.md.
std::vector<Finding> InspectHost(const HostFiles& files, const InspectionOptions& options = {});

}  // namespace loopfleet::monitoring
