#include "common/job/outcome.h"

namespace loopfleet {

bool IsPartial(std::string_view note) {
  constexpr std::string_view kColon = ": ";
  const std::size_t detail = note.rfind(kColon);  // "16 of 256", or a reason in words
  return detail != note.npos &&
         note.find_first_not_of("0123456789 of", detail + kColon.size()) == note.npos;
}

std::string_view SourceText(const Outcome& outcome) {
  const bool is_same = outcome.source == OutcomeSource::kMeasured && outcome.evaluation.same_code;
  return is_same ? kSameCodeSource : EnumName(outcome.source);
}

std::string_view OutcomeLabel(const Evaluation& evaluation) {
  return evaluation.ok() ? "ok" : InfoOf(evaluation.failure().code).name;
}

std::size_t BytesOf(const Evaluation& evaluation) {
  std::size_t bytes = 0;
  for (const std::string& note : evaluation.notes) bytes += note.size();
  if (!evaluation.ok()) return bytes + evaluation.failure().message.size();
  if (!evaluation.is_timed()) return bytes + BytesOf(evaluation.observed());
  const Measurement& measurement = evaluation.measurement();
  return bytes + measurement.samples_ns.size() * sizeof(double) + measurement.sample_flags.size();
}

std::size_t BytesOf(const Outcome& outcome) {
  return BytesOf(outcome.evaluation) + outcome.tag.size() +
         outcome.actions.size() * sizeof(looptree::Action) +
         std::visit([](const auto& source) { return source.text.size(); }, outcome.benchmark);
}

}  // namespace loopfleet
