#include "client/search/open_space.h"

#include "client/search/loop_space.h"
#include "client/search/pass_space.h"

namespace loopfleet::client {

Result<SharedSpace> OpenSearchSpace(const looptree::Source& source) {
  if (IsProgram(source)) {
    LF_TRY(SharedSpace space, PassSpace::Open(source));
    return space;
  }
  LF_TRY(SharedSpace space, LoopSpace::Open(source));
  return space;
}

}  // namespace loopfleet::client
