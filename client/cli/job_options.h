#pragma once
// Options for the optional fields of a job (common/job/job_fields.h), such as --min-grade.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace loopfleet::client {

// Those given are added to `fields`, as in a job line.
void AddJobOptions(CLI::App& app, nlohmann::ordered_json& fields);

}  // namespace loopfleet::client
