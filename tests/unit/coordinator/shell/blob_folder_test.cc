#include "coordinator/shell/blob_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "common/base/sha256.h"
#include "common/wire/bounds.h"
#include "tests/unit/coordinator/shell/coordinator_process.h"

namespace loopfleet::coordinator {
namespace {

constexpr std::uint64_t kRoom = std::uint64_t{64} << 20;
constexpr Uuid kAlice{.bytes = {1}};
constexpr Uuid kBob{.bytes = {2}};

class BlobFolderTest : public testing::Test {
 protected:
  const PrivateDir dir;
  const std::filesystem::path path = dir.path() / "programs";

  BlobFolder Open(const BlobFolder::Bounds& bounds = {.bytes = kRoom}) {
    return BlobFolder::Open(path, bounds).value();
  }
  static wire::BlobPiece Piece(const std::string& program, std::size_t offset, std::size_t size) {
    return {.sha256 = Sha256Of(program),
            .total = program.size(),
            .offset = offset,
            .bytes = program.substr(offset, size)};
  }
  static std::string ProgramOf(std::size_t size, char filler) {
    return "BC" + std::string(size - 2, filler);
  }
  static std::string Read(BlobFolder& folder, const std::string& sha256) {
    std::string bytes;
    while (true) {
      const auto piece = folder.Get({.sha256 = sha256, .offset = bytes.size()}).value();
      bytes += piece.bytes;
      if (bytes.size() >= piece.total) return bytes;
    }
  }
};

TEST_F(BlobFolderTest, AProgramInPiecesIsReadBackInPieces) {
  const std::string program = ProgramOf(wire::kMaxBlobPieceBytes * 2 + 7, 'x');
  const std::string name = Sha256Of(program);
  BlobFolder folder = Open();
  EXPECT_EQ(folder.Put(Piece(program, 0, 0), kAlice), 0U);
  EXPECT_EQ(folder.Put(Piece(program, 0, 1000), kAlice), 1000U);
  EXPECT_EQ(folder.Get({.sha256 = name}).value().total, 0U) << "a part is no program";
  EXPECT_EQ(folder.Put(Piece(program, 0, 1000), kAlice), 1000U) << "sent again";
  EXPECT_EQ(folder.Put(Piece(program, 2000, 10), kAlice), 1000U) << "a gap";
  EXPECT_EQ(folder.Put(Piece(program, 1000, program.size()), kAlice), program.size());
  EXPECT_EQ(folder.Put(Piece(program, 0, 0), kAlice), program.size());
  EXPECT_EQ(folder.blobs(), 1U);
  EXPECT_EQ(folder.Get({.sha256 = name}).value().bytes.size(), wire::kMaxBlobPieceBytes);
  EXPECT_EQ(Read(folder, name), program);
}

TEST_F(BlobFolderTest, BothPartsAndProgramsOutliveTheProcess) {
  const std::string whole = ProgramOf(100, 'w');
  const std::string part = ProgramOf(100, 'p');
  {
    BlobFolder folder = Open();
    ASSERT_EQ(folder.Put(Piece(whole, 0, 100), kAlice), 100U);
    ASSERT_EQ(folder.Put(Piece(part, 0, 60), kAlice), 60U);
  }
  BlobFolder folder = Open();
  EXPECT_EQ(folder.blobs(), 1U);
  EXPECT_EQ(folder.Put(Piece(part, 0, 0), kAlice), 60U);
  EXPECT_EQ(folder.Put(Piece(part, 60, 40), kAlice), 100U);
  EXPECT_EQ(Read(folder, Sha256Of(whole)), whole);
  EXPECT_EQ(Read(folder, Sha256Of(part)), part);
}

TEST_F(BlobFolderTest, OtherBytesThanTheNameSaysAreNotKept) {
  const std::string program = ProgramOf(100, 'x');
  wire::BlobPiece lie = Piece(program, 0, 50);
  lie.bytes[7] = 'y';
  BlobFolder folder = Open();
  ASSERT_EQ(folder.Put(lie, kAlice), 50U);
  const auto refused = folder.Put(Piece(program, 50, 50), kAlice);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, FailureCode::kInvalidBenchmark);
  EXPECT_NE(refused.error().message.find("have the SHA-256"), std::string::npos);
  EXPECT_EQ(folder.bytes(), 0U);
  EXPECT_EQ(folder.Put(Piece(program, 0, 100), kAlice), 100U) << "an honest client goes on";
  wire::BlobPiece longer = Piece(program, 0, 0);
  longer.total = 101;
  EXPECT_EQ(folder.Put(longer, kAlice).error().code, FailureCode::kInvalidBenchmark);
  EXPECT_EQ(Read(folder, Sha256Of(program)), program);
}

TEST_F(BlobFolderTest, APartLongerThanTheProgramIsDropped) {
  const std::string program = ProgramOf(10, 'x');
  wire::BlobPiece lie = Piece(program, 0, 10);
  lie.total = 1'000;
  lie.bytes = std::string(500, 'z');
  BlobFolder folder = Open();
  ASSERT_EQ(folder.Put(lie, kAlice), 500U);
  EXPECT_EQ(folder.Put(Piece(program, 0, 0), kAlice), 0U);
  EXPECT_EQ(folder.Put(Piece(program, 0, 10), kAlice), 10U);
}

TEST_F(BlobFolderTest, ADamagedFileIsNoProgram) {
  const std::string program = ProgramOf(100, 'x');
  BlobFolder folder = Open();
  ASSERT_TRUE(folder.Put(Piece(program, 0, 100), kAlice));
  std::fstream(path / Sha256Of(program), std::ios::in | std::ios::out).seekp(50).put('y');
  EXPECT_EQ(folder.Get({.sha256 = Sha256Of(program)}).value().total, 0U);
  EXPECT_EQ(folder.damaged(), 1U);
  EXPECT_FALSE(std::filesystem::exists(path / Sha256Of(program)));
  EXPECT_EQ(folder.Put(Piece(program, 0, 100), kAlice), 100U);
}

TEST_F(BlobFolderTest, ACutFileIsReplacedByItsSender) {
  const std::string program = ProgramOf(100, 'x');
  std::filesystem::create_directory(path);
  std::ofstream(path / Sha256Of(program)) << program.substr(0, 40);
  BlobFolder folder = Open();
  EXPECT_EQ(folder.Put(Piece(program, 0, 0), kAlice), 0U);
  EXPECT_EQ(folder.Put(Piece(program, 0, 100), kAlice), 100U);
  EXPECT_EQ(Read(folder, Sha256Of(program)), program);
}

TEST_F(BlobFolderTest, AFileThatCannotBeReadNowStays) {
  const std::string program = ProgramOf(100, 'x');
  {
    ASSERT_TRUE(Open().Put(Piece(program, 0, 100), kAlice));
  }
  BlobFolder folder = Open();
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{0, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto answer = folder.Get({.sha256 = Sha256Of(program)});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kSystem);
  EXPECT_EQ(folder.damaged(), 0U);
  EXPECT_EQ(Read(folder, Sha256Of(program)), program);
}

TEST_F(BlobFolderTest, TheLongestUnusedMakesRoomAlsoAfterARestart) {
  const std::uint64_t room = 3 * 8192;
  const std::string a = ProgramOf(8192, 'a'), b = ProgramOf(8192, 'b'), c = ProgramOf(8192, 'c');
  const std::string d = ProgramOf(8192, 'd');
  {
    BlobFolder folder = Open({.bytes = room});
    for (const std::string& each : {a, b, c}) ASSERT_TRUE(folder.Put(Piece(each, 0, 8192), kAlice));
    ASSERT_EQ(folder.bytes(), room);
    ASSERT_EQ(folder.Get({.sha256 = Sha256Of(a)}).value().total, 8192U);  // b is the longest unused
  }
  BlobFolder folder = Open({.bytes = room});
  EXPECT_EQ(folder.Put(Piece(d, 0, 8192), kAlice), 8192U);
  EXPECT_EQ(folder.removed(), 1U);
  EXPECT_EQ(folder.bytes(), room);
  EXPECT_EQ(folder.Get({.sha256 = Sha256Of(b)}).value().total, 0U);
  for (const std::string& each : {a, c, d})
    EXPECT_TRUE(Read(folder, Sha256Of(each)) == each) << each.substr(0, 9);
  // A smaller bound applies from the next start on.
  EXPECT_LE(Open({.bytes = 8192}).bytes(), 8192U);
}

TEST_F(BlobFolderTest, AClientThatFillsItsAllowanceIsRefusedAndOthersAreNot) {
  const BlobFolder::Bounds bounds{.bytes = 100 * 8192, .bytes_per_client = 2 * 8192};
  const std::string a = ProgramOf(8192, 'a'), b = ProgramOf(8192, 'b'), c = ProgramOf(8192, 'c');
  {
    BlobFolder folder = Open(bounds);
    EXPECT_EQ(folder.Put(Piece(a, 0, 8192), kAlice), 8192U);
    EXPECT_EQ(folder.Put(Piece(b, 0, 8192), kAlice), 8192U);
  }
  BlobFolder folder = Open(bounds);  // a restart is no new allowance
  const auto refused = folder.Put(Piece(c, 0, 100), kAlice);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, FailureCode::kQuotaExceeded);
  EXPECT_NE(refused.error().message.find("16384 bytes (limit 16384, --uploads-size-per-client)"),
            std::string::npos)
      << refused.error().message;
  EXPECT_EQ(folder.Put(Piece(a, 0, 0), kAlice), 8192U) << "what is there may be asked for";
  EXPECT_EQ(folder.Put(Piece(c, 0, 8192), kBob), 8192U);
  EXPECT_EQ(folder.removed(), 0U);
  EXPECT_EQ(folder.blobs(), 3U);
}

TEST_F(BlobFolderTest, ItsOwnLongestUnusedProgramMakesRoomForAClientAndNoOthers) {
  const BlobFolder::Bounds bounds{
      .bytes = 100 * 8192, .bytes_per_client = 2 * 8192, .in_use = std::chrono::seconds(0)};
  BlobFolder folder = Open(bounds);
  const std::string a = ProgramOf(8192, 'a'), b = ProgramOf(8192, 'b'), c = ProgramOf(8192, 'c');
  const std::string bobs = ProgramOf(8192, 'd');
  ASSERT_TRUE(folder.Put(Piece(bobs, 0, 8192), kBob));  // the longest unused of all
  ASSERT_TRUE(folder.Put(Piece(a, 0, 8192), kAlice));
  ASSERT_TRUE(folder.Put(Piece(b, 0, 8192), kAlice));
  ASSERT_EQ(folder.Get({.sha256 = Sha256Of(a)}).value().total, 8192U);
  EXPECT_EQ(folder.Put(Piece(c, 0, 4096), kAlice), 4096U);
  EXPECT_EQ(folder.Put(Piece(c, 4096, 4096), kAlice), 8192U);
  EXPECT_EQ(folder.removed(), 1U);
  EXPECT_EQ(folder.Get({.sha256 = Sha256Of(b)}).value().total, 0U);
  for (const std::string& each : {a, c, bobs}) EXPECT_TRUE(Read(folder, Sha256Of(each)) == each);
  std::size_t marks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    marks += entry.path().native().find(".of-") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(marks, 3U) << "that of a removed program is gone, too";
}

TEST_F(BlobFolderTest, AWallClockThatIsSetKeepsNoClientOut) {
  const BlobFolder::Bounds bounds{
      .bytes = 100 * 8192, .bytes_per_client = 2 * 8192, .in_use = std::chrono::seconds(3)};
  const std::string a = ProgramOf(8192, 'a'), b = ProgramOf(8192, 'b'), c = ProgramOf(8192, 'c');
  {
    BlobFolder folder = Open(bounds);
    ASSERT_TRUE(folder.Put(Piece(a, 0, 8192), kAlice));
    ASSERT_TRUE(folder.Put(Piece(b, 0, 8192), kAlice));
  }
  for (const std::string& each : {a, b}) {
    std::filesystem::last_write_time(
        path / Sha256Of(each),
        std::filesystem::file_time_type::clock::now() + std::chrono::hours(24));
  }
  BlobFolder folder = Open(bounds);
  const auto refused = folder.Put(Piece(c, 0, 8192), kAlice);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, FailureCode::kQuotaExceeded);
  auto taken = folder.Put(Piece(c, 0, 4096), kAlice);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!taken && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    taken = folder.Put(Piece(c, 0, 4096), kAlice);
  }
  EXPECT_EQ(taken, 4096U);
  EXPECT_EQ(folder.removed(), 1U);
}

TEST_F(BlobFolderTest, WhatWasUsedLongBeforeAStartMakesRoomAtOnce) {
  const BlobFolder::Bounds bounds{.bytes = 100 * 8192, .bytes_per_client = 8192};
  const std::string a = ProgramOf(8192, 'a'), b = ProgramOf(8192, 'b');
  {
    BlobFolder folder = Open(bounds);
    ASSERT_TRUE(folder.Put(Piece(a, 0, 8192), kAlice));
  }
  std::filesystem::last_write_time(
      path / Sha256Of(a),
      std::filesystem::file_time_type::clock::now() - 2 * std::chrono::seconds(bounds.in_use));
  BlobFolder folder = Open(bounds);
  EXPECT_EQ(folder.Put(Piece(b, 0, 8192), kAlice), 8192U);
}

TEST_F(BlobFolderTest, NoClientSpoilsAnothersPart) {
  const std::string program = ProgramOf(100, 'x');
  wire::BlobPiece shorter = Piece(program, 0, 1);
  shorter.total = 1;
  wire::BlobPiece wrong = Piece(program, 60, 40);
  wrong.bytes = std::string(40, 'y');
  BlobFolder folder = Open();
  ASSERT_EQ(folder.Put(Piece(program, 0, 60), kAlice), 60U);
  EXPECT_FALSE(folder.Put(shorter, kBob)) << "one byte has another hash";
  EXPECT_EQ(folder.Put(wrong, kBob), 0U);
  EXPECT_EQ(folder.Put(Piece(program, 0, 0), kAlice), 60U);
  EXPECT_EQ(folder.Put(Piece(program, 0, 60), kBob), 60U);
  EXPECT_FALSE(folder.Put(wrong, kBob));
  EXPECT_EQ(folder.Put(Piece(program, 0, 0), kAlice), 60U);
  EXPECT_EQ(folder.Put(Piece(program, 60, 40), kAlice), 100U);
  EXPECT_EQ(Read(folder, Sha256Of(program)), program);
}

TEST_F(BlobFolderTest, EachClientsPartCountsForItUntilOneIsWhole) {
  constexpr Uuid kObserved{};
  const BlobFolder::Bounds bounds{.bytes = 100 * 8192, .bytes_per_client = 2 * 8192};
  const std::string part = ProgramOf(12'288, 'p'), other = ProgramOf(8192, 'o');
  {
    BlobFolder folder = Open(bounds);
    for (const Uuid& client : {kAlice, kBob, kObserved}) {
      ASSERT_EQ(folder.Put(Piece(part, 0, 8192), client), 8192U);
    }
  }
  BlobFolder folder = Open(bounds);
  EXPECT_EQ(folder.bytes(), 3U * 8192);
  EXPECT_EQ(folder.Put(Piece(other, 0, 8192), kBob), 8192U);
  EXPECT_EQ(folder.Put(Piece(part, 8192, 4096), kBob).error().code, FailureCode::kQuotaExceeded);
  EXPECT_EQ(folder.Put(Piece(part, 8192, 4096), kAlice), 12'288U);
  EXPECT_EQ(folder.bytes(), 12'288U + 8192) << "the other parts are gone";
  EXPECT_EQ(folder.Put(Piece(part, 8192, 4096), kBob), 12'288U);
  EXPECT_EQ(folder.Put(Piece(ProgramOf(8192, 'q'), 0, 8192), kBob), 8192U) << "and what it took";
}

TEST_F(BlobFolderTest, ObservedValuesAndProgramsHaveRoomOfTheirOwn) {
  constexpr Uuid kObserved{};
  const BlobFolder::Bounds bounds{
      .bytes = 2 * 8192, .bytes_per_client = 8 * 8192, .observed_bytes = 2 * 8192};
  const std::string a = ProgramOf(8192, 'a'), b = ProgramOf(8192, 'b'), c = ProgramOf(8192, 'c');
  const std::string one = ProgramOf(8192, 'd'), two = ProgramOf(8192, 'e');
  const std::string three = ProgramOf(8192, 'f');
  {
    BlobFolder folder = Open(bounds);
    ASSERT_TRUE(folder.Put(Piece(one, 0, 8192), kAlice));  // the longest unused of all
    ASSERT_TRUE(folder.Put(Piece(two, 0, 8192), kAlice));
    for (const std::string& each : {a, b, c}) {
      EXPECT_EQ(folder.Put(Piece(each, 0, 8192), kObserved), 8192U);
    }
    EXPECT_EQ(folder.Get({.sha256 = Sha256Of(a)}).value().total, 0U);
    EXPECT_EQ(folder.removed(), 1U);
    EXPECT_EQ(folder.bytes(), 4U * 8192);
  }
  BlobFolder folder = Open(bounds);  // what is observed stays so
  EXPECT_EQ(folder.removed(), 0U);
  EXPECT_EQ(folder.Put(Piece(three, 0, 8192), kBob), 8192U);
  EXPECT_EQ(folder.Get({.sha256 = Sha256Of(one)}).value().total, 0U);
  EXPECT_EQ(folder.Put(Piece(a, 0, 8192), kObserved), 8192U);
  EXPECT_EQ(folder.Get({.sha256 = Sha256Of(b)}).value().total, 0U);
  for (const std::string& each : {a, c, two, three}) {
    EXPECT_TRUE(Read(folder, Sha256Of(each)) == each);
  }
}

TEST_F(BlobFolderTest, AFileThatSomeoneDeletedIsGoneAndCanComeAgain) {
  const std::string program = ProgramOf(100, 'x');
  BlobFolder folder = Open();
  ASSERT_EQ(folder.Put(Piece(program, 0, 100), kAlice), 100U);
  std::filesystem::remove(path / Sha256Of(program));
  EXPECT_EQ(folder.Get({.sha256 = Sha256Of(program)}).value().total, 0U);
  EXPECT_EQ(folder.Put(Piece(program, 0, 100), kAlice), 100U);
  EXPECT_EQ(Read(folder, Sha256Of(program)), program);
}

TEST_F(BlobFolderTest, AnObservedValueThatAClientSendsIsItsProgram) {
  constexpr Uuid kObserved{};
  const BlobFolder::Bounds bounds{.bytes_per_client = 8192, .observed_bytes = 2 * 8192};
  const std::string a = ProgramOf(8192, 'a'), b = ProgramOf(8192, 'b'), c = ProgramOf(8192, 'c');
  BlobFolder folder = Open(bounds);
  ASSERT_TRUE(folder.Put(Piece(a, 0, 8192), kObserved));
  EXPECT_EQ(folder.Put(Piece(a, 0, 0), kAlice), 8192U);
  EXPECT_EQ(folder.Put(Piece(b, 0, 1), kAlice).error().code, FailureCode::kQuotaExceeded)
      << "it counts for its allowance";
  for (const std::string& each : {b, c, ProgramOf(8192, 'd')}) {
    ASSERT_TRUE(folder.Put(Piece(each, 0, 8192), kObserved));
  }
  EXPECT_EQ(folder.Get({.sha256 = Sha256Of(a)}).value().total, 8192U);
  EXPECT_EQ(folder.Put(Piece(a, 0, 0), kObserved), 8192U)
      << "observed again, it stays the client's";
}

TEST_F(BlobFolderTest, AClientThatOnlyNamesAnObservedValueDoesNotOwnIt) {
  constexpr Uuid kObserved{};
  const BlobFolder::Bounds bounds{.bytes = 100 * 8192,
                                  .bytes_per_client = 8192,
                                  .observed_bytes = 2 * 8192,
                                  .in_use = std::chrono::seconds(0)};
  const std::string a = ProgramOf(8192, 'a'), b = ProgramOf(8192, 'b'), c = ProgramOf(8192, 'c');
  const std::string later = ProgramOf(8192, 'd'), last = ProgramOf(8192, 'e');
  {
    BlobFolder folder = Open(bounds);
    ASSERT_TRUE(folder.Put(Piece(a, 0, 8192), kObserved));
    ASSERT_EQ(folder.Put(Piece(a, 0, 0), kAlice), 8192U);
    EXPECT_EQ(folder.bytes(), 8192U);
    ASSERT_EQ(folder.Put(Piece(b, 0, 8192), kBob), 8192U);
    ASSERT_EQ(folder.Put(Piece(b, 0, 0), kObserved), 8192U) << "observed later, it is both, too";
  }
  BlobFolder folder = Open(bounds);  // and stays so
  EXPECT_EQ(folder.Put(Piece(later, 0, 8192), kAlice), 8192U);
  EXPECT_EQ(folder.Put(Piece(c, 0, 8192), kBob), 8192U);
  EXPECT_EQ(folder.removed(), 0U);
  for (const std::string& each : {a, b}) EXPECT_TRUE(Read(folder, Sha256Of(each)) == each);
  // Neither is anybody's program any more, also after a restart.
  folder = Open(bounds);
  EXPECT_EQ(folder.Put(Piece(last, 0, 8192), kObserved), 8192U);
  EXPECT_EQ(folder.removed(), 1U);
  EXPECT_EQ(folder.Get({.sha256 = Sha256Of(a)}).value().total, 0U);
  EXPECT_EQ(folder.bytes(), 4U * 8192);
  const std::filesystem::directory_iterator files(path);
  EXPECT_EQ(std::ranges::count_if(
                files, [](const auto& entry) { return entry.path().native().contains(".of-"); }),
            2)
      << "of what is a program";
}

TEST_F(BlobFolderTest, ADiskThatIsAlmostFullTakesNoPrograms) {
  const auto free = std::filesystem::space(dir.path()).available;
  BlobFolder folder = Open({.bytes = kRoom, .free_bytes = 2 * free});
  const auto refused = folder.Put(Piece(ProgramOf(100, 'x'), 0, 100), kAlice);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, FailureCode::kStorageFull);
  EXPECT_NE(refused.error().message.find("bytes free"), std::string::npos);
  EXPECT_EQ(folder.bytes(), 0U);
}

TEST_F(BlobFolderTest, AFileIsCountedInBlocksAndOthersAreLeftAlone) {
  BlobFolder folder = Open();
  EXPECT_FALSE(std::filesystem::exists(path)) << "until it is needed";
  ASSERT_TRUE(folder.Put(Piece(ProgramOf(3, 'x'), 0, 3), kAlice));
  EXPECT_EQ(folder.bytes(), 4096U);
  std::ofstream(path / "notes.txt") << "mine";
  EXPECT_EQ(Open().bytes(), 4096U);
  EXPECT_TRUE(std::filesystem::exists(path / "notes.txt"));
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(BlobFolderTest, AFileInPlaceOfTheFolderIsAnError) {
  std::ofstream(path) << "no folder";
  const auto opened = BlobFolder::Open(path, {.bytes = kRoom});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace loopfleet::coordinator
