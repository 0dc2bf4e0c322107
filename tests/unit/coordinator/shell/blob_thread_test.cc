#include "coordinator/shell/blob_thread.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "common/base/sha256.h"
#include "coordinator/shell/observer.h"
#include "tests/unit/coordinator/shell/coordinator_process.h"

namespace loopfleet::coordinator {
namespace {

const std::string kProgram = "BC-a-program";

BlobThread::Request Piece(std::uint64_t number, std::uint8_t client = 1) {
  return KeepBlob{
      .from = {.peer = "c", .number = number},
      .client = Uuid{{client}},
      .piece = {
          .sha256 = Sha256Of(kProgram), .total = kProgram.size(), .offset = 0, .bytes = kProgram}};
}

class BlobThreadTest : public testing::Test {
 protected:
  Effects Take(std::size_t count) {
    Effects all;
    Await("the disk", [&] {
      for (Effect& answer : thread.TakeAnswers()) all.push_back(std::move(answer));
      return all.size() >= count;
    });
    return all;
  }

  PrivateDir dir;
  monitoring::Registry registry;
  monitoring::CoordinatorMetrics metrics{registry, AllLabels()};
  wire::Wakeup wakeup;
  BlobThread thread{BlobFolder::Open(dir.path() / "programs", {.bytes = 1 << 20}).value(), metrics,
                    wakeup};
};

TEST_F(BlobThreadTest, APieceIsAnsweredAndThenSentToAWorker) {
  auto request = Piece(7);
  ASSERT_TRUE(thread.Add(request));
  const Effects kept = Take(1);
  const auto& reply = std::get<ReplyToClient>(kept[0]);
  EXPECT_EQ(reply.peer, "c");
  EXPECT_EQ(reply.number, 7U);
  EXPECT_EQ(std::get<wire::BlobHeld>(reply.message).bytes, kProgram.size());
  request = SendBlob{.to = {.peer = "w"}, .wanted = {.sha256 = Sha256Of(kProgram), .offset = 3}};
  ASSERT_TRUE(thread.Add(request));
  const Effects sent = Take(1);
  const auto& command = std::get<SendToWorker>(sent[0]);
  EXPECT_EQ(command.peer, "w");
  EXPECT_EQ(std::get<wire::BlobPiece>(command.command),
            (wire::BlobPiece{.sha256 = Sha256Of(kProgram),
                             .total = kProgram.size(),
                             .offset = 3,
                             .bytes = kProgram.substr(3)}));
}

TEST_F(BlobThreadTest, AWorkersPieceIsAnsweredAndThenSentToAClient) {
  auto request = Piece(7);
  std::get<KeepBlob>(request).from = {.peer = "w"};
  ASSERT_TRUE(thread.Add(request));
  const Effects kept = Take(1);
  const auto& command = std::get<SendToWorker>(kept[0]);
  EXPECT_EQ(command.peer, "w");
  EXPECT_EQ(std::get<wire::WorkerBlobHeld>(command.command),
            (wire::WorkerBlobHeld{.sha256 = Sha256Of(kProgram), .bytes = kProgram.size()}));
  request = SendBlob{.to = {.peer = "c", .number = 8}, .wanted = {.sha256 = Sha256Of(kProgram)}};
  ASSERT_TRUE(thread.Add(request));
  const Effects sent = Take(1);
  const auto& reply = std::get<ReplyToClient>(sent[0]);
  EXPECT_EQ(reply.number, 8U);
  EXPECT_EQ(std::get<wire::BlobPiece>(reply.message).bytes, kProgram);
}

TEST_F(BlobThreadTest, AWorkersWrongBytesAreAFailureInItsAnswer) {
  auto request = Piece(1);
  std::get<KeepBlob>(request).from = {.peer = "w"};
  std::get<KeepBlob>(request).piece.bytes[0] = 'X';
  ASSERT_TRUE(thread.Add(request));
  const Effects answers = Take(1);
  const auto& held = std::get<wire::WorkerBlobHeld>(std::get<SendToWorker>(answers[0]).command);
  EXPECT_EQ(held.failure->code, FailureCode::kInvalidBenchmark);
}

TEST_F(BlobThreadTest, QuestionsOfClientsLeaveRoomToThoseOfWorkers) {
  constexpr std::uint64_t kMost = 16 + 1 + 64;  // answers, one in hand, questions that wait
  const wire::BlobWanted wanted{.sha256 = Sha256Of(kProgram)};
  std::uint64_t added = 0;
  BlobThread::Request request;
  Await("room", [&] {
    request = SendBlob{.to = {.peer = "c", .number = added}, .wanted = wanted};
    added += thread.Add(request) ? 1 : 0;
    return added == kMost;
  });
  request = SendBlob{.to = {.peer = "c", .number = added}, .wanted = wanted};
  EXPECT_FALSE(thread.Add(request));
  request = SendBlob{.to = {.peer = "w"}, .wanted = wanted};
  EXPECT_TRUE(thread.Add(request));
  EXPECT_EQ(Take(kMost + 1).size(), kMost + 1);
}

TEST_F(BlobThreadTest, PiecesOfOneClientLeaveRoomToOthersAndToWorkers) {
  constexpr std::uint64_t kMost = 16 + 1 + 4;  // answers, one in hand, pieces that wait
  constexpr std::uint64_t kPlaces = 16;
  const auto workers_piece = [] {
    auto request = Piece(0, 0);
    std::get<KeepBlob>(request).from = {.peer = "w"};
    return request;
  };
  std::uint64_t added = 0;
  Await("room", [&] {
    auto request = Piece(added);
    added += thread.Add(request) ? 1 : 0;
    return added == kMost;
  });
  auto request = Piece(added);
  EXPECT_FALSE(thread.Add(request));
  for (std::uint64_t i = 4; i < kPlaces; ++i) {
    request = Piece(added, static_cast<std::uint8_t>(1 + i / 4));
    EXPECT_TRUE(thread.Add(request)) << i;
  }
  request = Piece(added, 9);
  EXPECT_FALSE(thread.Add(request)) << "clients have as many places";
  for (std::uint64_t i = 0; i < kPlaces; ++i) {
    request = workers_piece();
    EXPECT_TRUE(thread.Add(request)) << i;
  }
  request = workers_piece();
  EXPECT_FALSE(thread.Add(request));
  EXPECT_EQ(Take(kMost + 12 + kPlaces).size(), kMost + 12 + kPlaces);
  request = Piece(added);
  EXPECT_TRUE(thread.Add(request)) << "what is done takes no place";
}

TEST_F(BlobThreadTest, WrongBytesAreRefused) {
  auto request = Piece(1);
  std::get<KeepBlob>(request).piece.bytes[0] = 'X';
  ASSERT_TRUE(thread.Add(request));
  const Effects answers = Take(1);
  const auto& reply = std::get<ReplyToClient>(answers[0]);
  EXPECT_EQ(std::get<wire::Refused>(reply.message).failure.code, FailureCode::kInvalidBenchmark);
}

// An event loop that takes no answers.
TEST_F(BlobThreadTest, PiecesAndAnswersAreBoundedAndNoneIsLost) {
  constexpr std::uint64_t kMost = 16 + 1 + 16;  // answers, one in hand, pieces that wait
  std::uint64_t added = 0;
  Await("room", [&] {
    auto request = Piece(added, static_cast<std::uint8_t>(1 + added));
    added += thread.Add(request) ? 1 : 0;
    return added == kMost;
  });
  auto request = Piece(added, 100);
  EXPECT_FALSE(thread.Add(request));
  EXPECT_EQ(std::get<KeepBlob>(request).piece.bytes, kProgram) << "it stays with the caller";
  request = SendBlob{.to = {.peer = "w"}, .wanted = {.sha256 = Sha256Of(kProgram)}};
  EXPECT_TRUE(thread.Add(request)) << "questions are short";
  const Effects answers = Take(kMost + 1);
  for (std::uint64_t i = 0; i < kMost; ++i) {
    EXPECT_EQ(std::get<ReplyToClient>(answers[i]).number, i);
  }
}

}  // namespace
}  // namespace loopfleet::coordinator
