#include "common/job/measurement.h"

#include "common/base/check.h"

namespace loopfleet {

std::string_view GradeName(Grade grade) {
  switch (grade) {
    case Grade::kA: return "A";
    case Grade::kB: return "B";
    case Grade::kC: return "C";
  }
  LF_CHECK(false, "grade {}", static_cast<int>(grade));
}

}  // namespace loopfleet
