#include "client/search/figure.h"

namespace loopfleet::client {

double FigureOf(const Evaluation& evaluation) {
  if (const auto* observed = std::get_if<Observed>(&evaluation.verdict)) {
    return std::get<double>(observed->values.at(kInstructions));
  }
  if (!evaluation.is_timed() || evaluation.measurement().grade == Grade::kD) return kNoFigure;
  return evaluation.measurement().elapsed_ns;
}

bool IsInconclusive(const Evaluation& evaluation) {
  if (evaluation.is_timed()) return evaluation.measurement().grade == Grade::kD;
  if (evaluation.ok()) return false;
  return InfoOf(evaluation.failure().code).policy.is_retryable;
}

}  // namespace loopfleet::client
