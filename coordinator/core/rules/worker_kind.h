#pragma once
// WorkerKind: the conditions that all results of a worker have. It determines whether a stored
// result or a known failure could have come from a present worker.

#include <string>

#include "common/job/hardware_facts.h"
#include "common/job/outcome.h"
#include "common/wire/message.h"

namespace loopfleet::coordinator {

struct WorkerKind {
  std::string hardware_class;
  CompilerFacts compiler;
  std::string policy;
  friend bool operator==(const WorkerKind&, const WorkerKind&) = default;
};

inline WorkerKind KindOf(const wire::WorkerHello& facts) {
  return {.hardware_class = facts.hardware.hardware_class,
          .compiler = facts.compiler,
          .policy = facts.policy};
}
// Without copying.
inline bool IsOfKind(const wire::WorkerHello& facts, const WorkerKind& kind) {
  return facts.hardware.hardware_class == kind.hardware_class && facts.compiler == kind.compiler &&
         facts.policy == kind.policy;
}
inline bool IsOfKind(const Conditions& conditions, const WorkerKind& kind) {
  return conditions.hardware.hardware_class == kind.hardware_class &&
         conditions.compiler == kind.compiler && conditions.policy == kind.policy;
}

}  // namespace loopfleet::coordinator
