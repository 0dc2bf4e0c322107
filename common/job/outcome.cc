#include "common/job/outcome.h"

#include "common/base/check.h"

namespace loopfleet {

std::string_view OutcomeSourceName(OutcomeSource source) {
  switch (source) {
    case OutcomeSource::kMeasured: return "measured";
    case OutcomeSource::kStored: return "stored";
    case OutcomeSource::kCoalesced: return "coalesced";
  }
  LF_CHECK(false, "outcome source {}", static_cast<int>(source));
}

bool IsPartial(std::string_view note) {
  constexpr std::string_view kColon = ": ";
  const std::size_t detail = note.rfind(kColon);  // "16 of 256", or a reason in words
  return detail != note.npos &&
         note.find_first_not_of("0123456789 of", detail + kColon.size()) == note.npos;
}

std::string_view SourceText(const Outcome& outcome) {
  const bool is_same = outcome.source == OutcomeSource::kMeasured && outcome.evaluation.same_code;
  return is_same ? kSameCodeSource : OutcomeSourceName(outcome.source);
}

std::string_view OutcomeLabel(const Evaluation& evaluation) {
  return evaluation.ok() ? "ok" : InfoOf(evaluation.failure().code).name;
}

}  // namespace loopfleet
