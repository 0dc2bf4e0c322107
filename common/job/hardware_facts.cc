#include "common/job/hardware_facts.h"

#include <fmt/format.h>

namespace loopfleet {

std::string CpuClassOf(const HardwareFacts& facts, const CpuIdentity& identity) {
  return fmt::format("cpu:{}:{}:{}:{}:{}c{}t:l1d={}K:l2={}K:l3={}K{}{}", identity.vendor,
                     identity.family_model_stepping, facts.model, facts.isa, facts.physical_cores,
                     facts.logical_cores, facts.l1d_bytes / 1024, facts.l2_bytes / 1024,
                     facts.l3_bytes / 1024, identity.core_kind.empty() ? "" : ":",
                     identity.core_kind);
}

}  // namespace loopfleet
