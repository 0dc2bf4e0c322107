// Blobs that clients and workers send and fetch: who may, and to whom jobs over them go.

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

const std::string kName(64, 'a');

TEST(Core, APieceOfAProgramIsKeptForAClientAndForNoStranger) {
  OneLease h;
  const wire::BlobPiece piece{.sha256 = kName, .total = 3, .offset = 0, .bytes = "BCx"};
  auto number = h.Ask("stranger", piece);
  EXPECT_EQ(h.TakeReply<wire::Refused>("stranger", number)->failure.code,
            FailureCode::kUnauthenticated);
  EXPECT_TRUE(h.kept_blobs.empty());
  number = h.Ask("c", piece);
  ASSERT_EQ(h.kept_blobs.size(), 1U);
  EXPECT_EQ(h.kept_blobs[0].from.peer, "c");
  EXPECT_EQ(h.kept_blobs[0].from.number, number);
  EXPECT_EQ(h.kept_blobs[0].client, Named(1));
  EXPECT_EQ(h.kept_blobs[0].piece, piece);
}

TEST(Core, AProgramIsSentToAWorkerThatSaidHello) {
  OneLease h;
  const wire::BlobWanted wanted{.sha256 = kName, .offset = 7};
  h.Say("stranger", wanted);
  EXPECT_TRUE(h.sent_blobs.empty());
  EXPECT_TRUE(h.TakeCommand<wire::HelloWanted>("stranger"));
  h.Say("w", wanted);
  ASSERT_EQ(h.sent_blobs.size(), 1U);
  EXPECT_EQ(h.sent_blobs[0].to.peer, "w");
  EXPECT_FALSE(h.sent_blobs[0].to.number);
  EXPECT_EQ(h.sent_blobs[0].wanted, wanted);
}

TEST(Core, AnObservedValueIsKeptForAWorkerThatSaidHello) {
  OneLease h;
  const wire::BlobPiece piece{.sha256 = kName, .total = 3, .offset = 0, .bytes = "BCx"};
  h.Say("stranger", piece);
  EXPECT_TRUE(h.kept_blobs.empty());
  h.Say("w", piece);
  ASSERT_EQ(h.kept_blobs.size(), 1U);
  EXPECT_EQ(h.kept_blobs[0].from.peer, "w");
  EXPECT_FALSE(h.kept_blobs[0].from.number);
  EXPECT_TRUE(h.kept_blobs[0].client.is_nil());
  EXPECT_EQ(h.kept_blobs[0].piece, piece);
}

TEST(Core, ABlobIsSentToAClientAndToNoStranger) {
  OneLease h;
  const wire::BlobWanted wanted{.sha256 = kName, .offset = 7};
  auto number = h.Ask("stranger", wanted);
  EXPECT_EQ(h.TakeReply<wire::Refused>("stranger", number)->failure.code,
            FailureCode::kUnauthenticated);
  number = h.Ask("c", wanted);
  ASSERT_EQ(h.sent_blobs.size(), 1U);
  EXPECT_EQ(h.sent_blobs[0].to.peer, "c");
  EXPECT_EQ(h.sent_blobs[0].to.number, number);
  EXPECT_EQ(h.sent_blobs[0].wanted, wanted);
}

TEST(Core, AJobOverSuchAProgramIsNotGivenToAWorkerThatCannotFetchIt) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello(
      "old", 50,
      {.credit = 4, .version = {.major = 1, .minor = 2}, .capabilities = {"kind=passes"}});
  h.Submit("c", {{.tree = 1, .benchmark = "bitcode://sha256/" + kName}});
  h.Write();
  EXPECT_TRUE(h.TakeLeases("old").empty());
  h.WorkerHello(
      "new", 51,
      {.credit = 4, .version = {.major = 1, .minor = 3}, .capabilities = {"kind=passes"}});
  EXPECT_EQ(h.TakeLeases("new").size(), 1U);
}

}  // namespace
}  // namespace loopfleet::coordinator
