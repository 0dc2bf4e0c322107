#include "client/outcome_json.h"

namespace loopfleet::client {

Json OutcomeJson(const RejectedJob& rejected) {
  Outcome outcome;
  outcome.evaluation.verdict = rejected.failure;
  outcome.tag = rejected.tag;
  Json json = OutcomeJson(outcome);
  // As given: an unknown action has no canonical name.
  json["benchmark"] = rejected.benchmark.empty() ? Json(nullptr) : Json(rejected.benchmark);
  json["actions"] = rejected.actions;
  json["job"] = nullptr;
  json["source"] = nullptr;
  return json;
}

}  // namespace loopfleet::client
