#include "worker/coordinator_link/program_fetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "common/base/sha256.h"

namespace loopfleet::worker {
namespace {

// Answers every question on the asking thread, as a coordinator with the given program would.
struct Coordinator {
  std::string program;
  std::size_t piece = 10;
  int lost = 0;  // of the first questions
  int asked = 0;
  std::unique_ptr<ProgramFetch> fetch;

  explicit Coordinator(std::string bytes,
                       std::chrono::milliseconds limit = std::chrono::seconds(30))
      : program(std::move(bytes)) {
    fetch = std::make_unique<ProgramFetch>(
        ProgramFetch::Options{.ask_again = std::chrono::milliseconds(5), .limit = limit},
        [this] { OnQuestion(); });
  }
  void OnQuestion() {
    const auto question = fetch->TakeQuestion();
    ASSERT_TRUE(question);
    EXPECT_FALSE(fetch->TakeQuestion()) << "taken once";
    if (++asked <= lost) return;
    fetch->Answer({.sha256 = question->sha256,
                   .total = program.size(),
                   .offset = question->offset,
                   .bytes = program.substr(question->offset, piece)});
  }
};

TEST(ProgramFetch, PiecesBecomeTheProgramAndLostQuestionsAreAskedAgain) {
  const std::string program(35, 'x');
  Coordinator coordinator(program);
  coordinator.lost = 2;
  EXPECT_EQ(coordinator.fetch->Fetch(Sha256Of(program)), program);
  EXPECT_EQ(coordinator.asked, 6);
}

TEST(ProgramFetch, AnUnknownProgramNamesTheCommand) {
  Coordinator coordinator("");
  const auto fetched = coordinator.fetch->Fetch(std::string(64, 'a'));
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, FailureCode::kInvalidBenchmark);
  EXPECT_NE(fetched.error().message.find("loopfleet llvm add FILE"), std::string::npos);
}

TEST(ProgramFetch, OtherBytesAreNotTaken) {
  Coordinator coordinator(std::string(35, 'x'));
  const auto fetched = coordinator.fetch->Fetch(Sha256Of("something else"));
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, FailureCode::kDeviceFault);
  EXPECT_NE(fetched.error().message.find("came with the SHA-256"), std::string::npos);
}

TEST(ProgramFetch, APieceWithoutBytesEndsIt) {
  Coordinator coordinator(std::string(35, 'x'));
  coordinator.piece = 0;
  EXPECT_EQ(coordinator.fetch->Fetch(Sha256Of(coordinator.program)).error().code,
            FailureCode::kDeviceFault);
}

TEST(ProgramFetch, SilenceEndsTheWaitAndSoDoesStop) {
  Coordinator coordinator(std::string(35, 'x'), std::chrono::milliseconds(500));
  coordinator.lost = 1'000;
  EXPECT_EQ(coordinator.fetch->Fetch(std::string(64, 'a')).error().code, FailureCode::kDeviceFault);
  EXPECT_GE(coordinator.asked, 2);
  ProgramFetch patient({.ask_again = std::chrono::hours(1), .limit = std::chrono::hours(1)}, [] {});
  std::thread stopper([&] { patient.Stop(); });
  EXPECT_FALSE(patient.Fetch(std::string(64, 'a')));
  stopper.join();
}

TEST(ProgramFetch, AnswersToOtherQuestionsAreIgnored) {
  const std::string program(20, 'x');
  std::unique_ptr<ProgramFetch> fetch;
  fetch = std::make_unique<ProgramFetch>(ProgramFetch::Options{}, [&] {
    const auto question = fetch->TakeQuestion();
    fetch->Answer({.sha256 = std::string(64, 'b'), .total = 1, .offset = 0, .bytes = "y"});
    fetch->Answer({.sha256 = question->sha256, .total = 20, .offset = 5, .bytes = "y"});
    fetch->Answer({.sha256 = question->sha256, .total = 20, .offset = 0, .bytes = program});
  });
  EXPECT_EQ(fetch->Fetch(Sha256Of(program)), program);
}

}  // namespace
}  // namespace loopfleet::worker
