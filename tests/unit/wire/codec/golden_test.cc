// Bytes written by an earlier version keep their meaning. tests/golden/wire/VERSION holds one frame
// of each message kind as that protocol version wrote it; fixed_messages.cc holds their meanings.
//
// Only decoding is tested against the bytes: fields added later make the structures wider, so a
// later version may write other bytes for the same meaning. LOOPFLEET_UPDATE_GOLDEN=1 writes
// missing files and never overwrites one.

#include <capnp/schema.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <variant>

#include "common/wire/codec/codec.h"
#include "schema/client.capnp.h"
#include "schema/worker.capnp.h"
#include "tests/support/paths.h"
#include "tests/unit/wire/codec/fixed_messages.h"

namespace loopfleet::wire {
namespace {

const std::filesystem::path kDirectory =
    std::filesystem::path(LOOPFLEET_SOURCE_DIR) / "tests/golden/wire";

bool Updating() {
  const char* value = std::getenv("LOOPFLEET_UPDATE_GOLDEN");
  return value != nullptr && std::string_view(value) == "1";
}

// Empty if the file does not exist.
std::string GoldenBytes(const std::filesystem::path& name, const std::string& encoded) {
  const auto path = kDirectory / name;
  if (!std::filesystem::exists(path) && Updating()) {
    std::ofstream(path, std::ios::binary) << encoded;
  }
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Message, class Decode>
void Check(const Named<Message>& messages, Decode decode, const std::string& version = "1.0") {
  for (const auto& [name, message] : messages) {
    SCOPED_TRACE(name);
    const std::string golden =
        GoldenBytes(std::filesystem::path(version) / (name + ".bin"), Encode(message));
    ASSERT_FALSE(golden.empty()) << "no golden bytes; LOOPFLEET_UPDATE_GOLDEN=1 writes them";
    const auto of_golden = decode(golden);
    ASSERT_TRUE(of_golden.has_value());
    EXPECT_EQ(*of_golden, message);
    const auto of_encoded = decode(Encode(message));
    ASSERT_TRUE(of_encoded.has_value());
    EXPECT_EQ(*of_encoded, message);
  }
}

TEST(Golden, Requests) { Check(FixedRequests(), DecodeClientRequest); }
TEST(Golden, RequestsOf12) { Check(FixedRequestsOf12(), DecodeClientRequest, "1.2"); }
TEST(Golden, Replies) { Check(FixedReplies(), DecodeCoordinatorReply); }
TEST(Golden, WorkerMessages) { Check(FixedWorkerMessages(), DecodeWorkerMessage); }
TEST(Golden, LaterReports) { Check(FixedLaterReports(), DecodeWorkerMessage); }
TEST(Golden, WorkerCommands) { Check(FixedWorkerCommands(), DecodeWorkerCommand); }

TEST(Golden, EveryKindHasItsFrame) {
  EXPECT_EQ(FixedRequests().size(), std::variant_size_v<ClientMessage> - 1);
  EXPECT_EQ(FixedReplies().size(), std::variant_size_v<CoordinatorMessage> - 1);
  EXPECT_EQ(FixedWorkerMessages().size(), std::variant_size_v<WorkerMessage> - 1);
  EXPECT_EQ(FixedWorkerCommands().size(), std::variant_size_v<WorkerCommand> - 1);
}

// Each member of the schema's unions, except `none`, has an alternative in the variant, and
// UnknownMember makes up for `none`.
template <class Struct, class Variant>
void ExpectAllKnown() {
  EXPECT_EQ(capnp::Schema::from<Struct>().getUnionFields().size(), std::variant_size_v<Variant>);
}

TEST(Golden, EveryKindOfTheSchemaIsAKind) {
  ExpectAllKnown<schema::ClientRequest, ClientMessage>();
  ExpectAllKnown<schema::CoordinatorReply, CoordinatorMessage>();
  ExpectAllKnown<schema::WorkerMessage, WorkerMessage>();
  ExpectAllKnown<schema::WorkerCommand, WorkerCommand>();
}

// No kind stands twice, in place of a missing one.
TEST(Golden, EveryFrameIsOfAKindOfItsOwn) {
  const auto kinds_of = [](const auto& messages, auto kind) {
    std::set<std::size_t> kinds;
    for (const auto& [name, message] : messages) kinds.insert(kind(message));
    return kinds.size();
  };
  const auto inner = [](const auto& message) { return message.message.index(); };
  const auto whole = [](const auto& message) { return message.index(); };
  EXPECT_EQ(kinds_of(FixedRequests(), inner), FixedRequests().size());
  EXPECT_EQ(kinds_of(FixedReplies(), inner), FixedReplies().size());
  EXPECT_EQ(kinds_of(FixedWorkerMessages(), whole), FixedWorkerMessages().size());
  EXPECT_EQ(kinds_of(FixedWorkerCommands(), whole), FixedWorkerCommands().size());
}

// Digests are stored with accepted requests, so an upgrade must not change them.
TEST(Golden, ContentDigest) {
  const auto request = FixedRequests()[1].second;
  EXPECT_EQ(ContentDigest(std::get<SubmitJobs>(request.message)),
            "4f467900a7f48c6910b276e676c23763");
}

}  // namespace
}  // namespace loopfleet::wire
