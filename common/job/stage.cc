#include "common/job/stage.h"

#include "common/base/check.h"

namespace loopfleet {

std::string_view StageName(Stage stage) {
  switch (stage) {
    case Stage::kQueue: return "queue";
    case Stage::kReplay: return "replay";
    case Stage::kCompile: return "compile";
    case Stage::kVerify: return "verify";
    case Stage::kMeasure: return "measure";
    case Stage::kStore: return "store";
  }
  LF_CHECK(false, "stage {}", static_cast<int>(stage));
}

}  // namespace loopfleet
