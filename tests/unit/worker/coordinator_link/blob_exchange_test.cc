#include "worker/coordinator_link/blob_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <variant>

#include "common/base/sha256.h"
#include "common/wire/bounds.h"

namespace loopfleet::worker {
namespace {

// Answers every question on the asking thread, as a coordinator with the given program would.
struct Coordinator {
  std::string program;
  std::size_t piece = 10;
  int lost = 0;  // of the first questions
  int asked = 0;
  std::optional<Failure> failure;  // of what is sent
  std::unique_ptr<BlobExchange> blobs;

  explicit Coordinator(std::string bytes,
                       std::chrono::milliseconds limit = std::chrono::seconds(30))
      : program(std::move(bytes)) {
    blobs = std::make_unique<BlobExchange>(
        BlobExchange::Options{.ask_again = std::chrono::milliseconds(5), .limit = limit},
        [this] { OnQuestion(); });
  }
  void OnQuestion() {
    const auto question = blobs->TakeQuestion();
    ASSERT_TRUE(question);
    EXPECT_FALSE(blobs->TakeQuestion()) << "taken once";
    if (++asked <= lost) return;
    std::visit([this](const auto& one) { On(one); }, *question);
  }
  void On(const wire::BlobWanted& wanted) const {
    blobs->Answer(wire::BlobPiece{.sha256 = wanted.sha256,
                                  .total = program.size(),
                                  .offset = wanted.offset,
                                  .bytes = program.substr(wanted.offset, piece)});
  }
  void On(const wire::BlobPiece& sent) {
    if (failure) {
      return blobs->Answer(wire::WorkerBlobHeld{.sha256 = sent.sha256, .failure = failure});
    }
    if (sent.offset == program.size()) program += sent.bytes;
    blobs->Answer(wire::WorkerBlobHeld{.sha256 = sent.sha256, .bytes = program.size()});
  }
};

TEST(BlobExchange, PiecesBecomeTheProgramAndLostQuestionsAreAskedAgain) {
  const std::string program(35, 'x');
  Coordinator coordinator(program);
  coordinator.lost = 2;
  EXPECT_EQ(coordinator.blobs->Fetch(Sha256Of(program)), program);
  EXPECT_EQ(coordinator.asked, 6);
}

TEST(BlobExchange, AnUnknownProgramNamesTheCommand) {
  Coordinator coordinator("");
  const auto fetched = coordinator.blobs->Fetch(std::string(64, 'a'));
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, FailureCode::kInvalidBenchmark);
  EXPECT_NE(fetched.error().message.find("loopfleet llvm add FILE"), std::string::npos);
}

TEST(BlobExchange, OtherBytesAreNotTaken) {
  Coordinator coordinator(std::string(35, 'x'));
  const auto fetched = coordinator.blobs->Fetch(Sha256Of("something else"));
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, FailureCode::kDeviceFault);
  EXPECT_NE(fetched.error().message.find("came with the SHA-256"), std::string::npos);
}

TEST(BlobExchange, APieceWithoutBytesEndsIt) {
  Coordinator coordinator(std::string(35, 'x'));
  coordinator.piece = 0;
  EXPECT_EQ(coordinator.blobs->Fetch(Sha256Of(coordinator.program)).error().code,
            FailureCode::kDeviceFault);
}

TEST(BlobExchange, SilenceEndsTheWaitAndSoDoesStop) {
  Coordinator coordinator(std::string(35, 'x'), std::chrono::milliseconds(500));
  coordinator.lost = 1'000;
  EXPECT_EQ(coordinator.blobs->Fetch(std::string(64, 'a')).error().code, FailureCode::kDeviceFault);
  EXPECT_GE(coordinator.asked, 2);
  BlobExchange patient({.ask_again = std::chrono::hours(1), .limit = std::chrono::hours(1)}, [] {});
  std::thread stopper([&] { patient.Stop(); });
  EXPECT_FALSE(patient.Fetch(std::string(64, 'a')));
  stopper.join();
}

TEST(BlobExchange, AnswersToOtherQuestionsAreIgnored) {
  const std::string program(20, 'x');
  std::unique_ptr<BlobExchange> blobs;
  blobs = std::make_unique<BlobExchange>(BlobExchange::Options{}, [&] {
    const auto question = std::get<wire::BlobWanted>(*blobs->TakeQuestion());
    using wire::BlobPiece;
    blobs->Answer(BlobPiece{.sha256 = std::string(64, 'b'), .total = 1, .bytes = "y"});
    blobs->Answer(BlobPiece{.sha256 = question.sha256, .total = 20, .offset = 5, .bytes = "y"});
    blobs->Answer(wire::WorkerBlobHeld{.sha256 = question.sha256, .bytes = 20});
    blobs->Answer(BlobPiece{.sha256 = question.sha256, .total = 20, .bytes = program});
  });
  EXPECT_EQ(blobs->Fetch(Sha256Of(program)), program);
}

TEST(BlobExchange, AValueIsSentInPiecesFromWhatTheCoordinatorHolds) {
  const std::string value(2 * wire::kMaxBlobPieceBytes + 5, 'x');
  Coordinator coordinator(value.substr(0, 7));
  coordinator.lost = 2;
  const auto kept = coordinator.blobs->Keep(value);
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, (Blob{.sha256 = Sha256Of(value), .bytes = value.size()}));
  EXPECT_EQ(coordinator.program, value);
  EXPECT_EQ(coordinator.asked, 2 + 1 + 2) << "lost, how much is held, pieces";
  coordinator.asked = coordinator.lost = 0;
  EXPECT_TRUE(coordinator.blobs->Keep(value));
  EXPECT_EQ(coordinator.asked, 1) << "it is held";
}

TEST(BlobExchange, WhyTheCoordinatorDoesNotKeepAValueIsTold) {
  Coordinator coordinator("");
  coordinator.failure = Failure{.code = FailureCode::kStorageFull, .message = "the disk is full"};
  const auto kept = coordinator.blobs->Keep("value");
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, FailureCode::kStorageFull);
  EXPECT_NE(kept.error().message.find("the disk is full"), std::string::npos);
  coordinator.failure = Failure{.code = FailureCode::kInvalidBenchmark};
  EXPECT_EQ(coordinator.blobs->Keep("value").error().code, FailureCode::kDeviceFault)
      << "another sender always spoils it";
}

TEST(BlobExchange, SilenceEndsTheSendingOfAValue) {
  Coordinator coordinator("", std::chrono::milliseconds(100));
  coordinator.lost = 1'000;
  EXPECT_EQ(coordinator.blobs->Keep("value").error().code, FailureCode::kDeviceFault);
}

}  // namespace
}  // namespace loopfleet::worker
