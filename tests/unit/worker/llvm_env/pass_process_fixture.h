#pragma once
// Tests of PassProcess: a real child, confined as in the daemon.

#include <gtest/gtest.h>

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/llvm_env/pass_child.h"
#include "worker/llvm_env/pass_process.h"
#include "worker/llvm_env/programs/program_source.h"
#include "worker/llvm_env/programs/tool_run.h"

namespace loopfleet::worker {

using Bitcode = std::shared_ptr<const std::string>;

inline Bitcode Shared(std::expected<std::string, Failure> bitcode) {
  EXPECT_TRUE(bitcode) << bitcode.error().message;
  return std::make_shared<const std::string>(bitcode.value_or(""));
}

inline Bitcode StressProgram(std::uint32_t seed) {
  return Shared(ProgramSource({}).BitcodeOf(passes::StressProgram{seed}));
}

// 7,732 instructions for seed 0.
inline Bitcode CsmithProgram(std::uint32_t seed) {
  return Shared(ProgramSource({}).BitcodeOf(passes::CsmithProgram{seed}));
}

inline Bitcode Assembled(const std::string& text) {
  auto bitcode = RunTool({"llvm-as-19", "-o", "-"}, text, {});
  EXPECT_TRUE(bitcode) << bitcode.error().message;
  return std::make_shared<const std::string>(bitcode.value_or(""));
}

// The steps 0 to `last`.
inline std::vector<std::uint32_t> StepsTo(std::size_t last) {
  std::vector<std::uint32_t> steps;
  for (std::uint32_t step = 0; step <= last; ++step) steps.push_back(step);
  return steps;
}

class PassProcessFixture : public testing::Test {
 protected:
  void SetUp() override { Start({}); }
  void Start(const PassLimits& limits, const PassProcess::Options& options = {},
             const std::optional<std::uint64_t>& private_bytes = {}) {
    process_.reset();
    fork_server_.reset();  // a new one would inherit what keeps the old one alive
    ChildPrograms programs;
    ChildProgram& program = programs.by_role[ChildRole::kPasses];
    program = PassChildProgram(limits, ProbeIsolation());
    program.limits.private_bytes = private_bytes.value_or(program.limits.private_bytes);
    auto fork_server = ForkServer::Start(programs);
    ASSERT_TRUE(fork_server) << fork_server.error().message;
    fork_server_ = *std::move(fork_server);
    process_ = std::make_unique<PassProcess>(
        *fork_server_, options,
        [this](ChildRole, ExitReason::Cause cause) { restarts_.push_back(cause); });
  }

  BatchResult Run(const Bitcode& bitcode, const std::vector<Episode>& episodes) {
    auto result = process_->Run(bitcode, episodes);
    EXPECT_TRUE(result) << result.error().message;
    return result ? *std::move(result)
                  : BatchResult{.episodes = std::vector<EpisodeResult>(episodes.size())};
  }

  std::unique_ptr<ForkServer> fork_server_;
  std::unique_ptr<PassProcess> process_;
  std::vector<ExitReason::Cause> restarts_;
};

}  // namespace loopfleet::worker
