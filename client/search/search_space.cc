#include "client/search/search_space.h"

#include "common/job/task.h"

namespace loopfleet::client {

bool IsProgram(const looptree::Source& source) { return TaskOf(source).kind == TaskKind::kPasses; }

}  // namespace loopfleet::client
