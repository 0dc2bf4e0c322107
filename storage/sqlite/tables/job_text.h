#pragma once
// The texts that a job is stored as: its actions as a list of names, its rarer options as JSON.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/job/job_spec.h"

namespace loopfleet::storage {

std::string ActionsText(const std::vector<looptree::Action>& actions);  // "down,swap_up,split_4"
// Also parses actions that no rule admits, such as "split_-1": a job may ask for one, and fails.
Result<std::vector<looptree::Action>> ParseActionsText(std::string_view text);

// The options that differ from their defaults, as a JSON object with the names of `loopfleet
// submit`; none if all have their defaults. A default may never change: that would change the
// meaning of rows already written. kInvalid: JSON cannot hold it (a number that is not finite, text
// that is not UTF-8).
//
// A job with a deadline also stores when it was accepted ("accepted_at_ns"), because its time runs
// while no coordinator does.
Result<std::optional<std::string>> OptionsText(const JobSpec& spec, WallTime accepted_at);
// Sets the options that `text` names.
struct StoredOptions {
  JobSpec& spec;
  std::optional<WallTime> accepted_at;
};
Status ParseOptionsText(std::string_view text, StoredOptions& options);

// A JSON array; none for no texts. kInvalid: a text is not UTF-8.
Result<std::optional<std::string>> ListText(const std::vector<std::string>& texts);
Result<std::vector<std::string>> ParseListText(std::string_view json);

}  // namespace loopfleet::storage
