#pragma once
// The task that runs LLVM passes over a program and observes what they leave (docs/LLVM.md).

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "common/job/failure.h"
#include "common/job/job_spec.h"
#include "common/job/observed.h"
#include "common/job/resolved_task.h"
#include "common/llvm_passes/observation.h"
#include "common/llvm_passes/program_uri.h"

namespace loopfleet {

// The job in the words of LLVM 19.
struct PassJob {
  passes::ProgramUri program;
  std::vector<std::string> texts;  // canonical, one for each pass
  std::vector<passes::Observation> observations;
};

// A pass is a flag of CompilerGym, with or without its dash, or a raw text. Nothing to observe:
// IrInstructionCount. INVALID_BENCHMARK, INVALID_ACTION (with the pass's index), MALFORMED (an
// observation that there is not).
std::expected<PassJob, Failure> PassJobOf(const JobSpec& spec);

std::expected<ResolvedTask, Failure> ResolvePassJob(const JobSpec& spec);

// Why the values are not what the job asked for; nullopt: they are.
std::optional<std::string> WhyNoAnswer(const JobSpec& spec, const Observed& observed);

}  // namespace loopfleet
