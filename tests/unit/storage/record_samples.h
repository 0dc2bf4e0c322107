#pragma once
// Records to store in tests, with a distinct value in each field.

#include <cstdint>
#include <string>
#include <vector>

#include "storage/record.h"

namespace loopfleet::storage {

JobSpec PlainSpec(int number);  // defaults, except for the benchmark and the actions
JobSpec FullSpec();             // no field at its default, and a program of its own

SubjectKey SomeKey(std::uint8_t number);
Conditions SomeConditions(const std::string& host = "host-1");
Evaluation SomeMeasurement(std::uint8_t number);
Evaluation SomeFailure(FailureCode code);  // with every field that a failure may have
Evaluation BareFailure(FailureCode code);  // with a code and a message only

JobsAccepted SomeBatch(std::uint64_t batch, std::vector<JobSpec> jobs);

struct Finish {
  std::uint64_t batch = 1;
  std::uint32_t index = 0;
  std::uint64_t sequence = 1;
  OutcomeSource source = OutcomeSource::kMeasured;
};
// The outcome of a job whose spec was `spec`.
Outcome SomeOutcome(const Finish& finish, const JobSpec& spec, Evaluation evaluation);

ResultKey KeyFor(const Evaluation& evaluation);

}  // namespace loopfleet::storage
