// Bytes written by an earlier version keep their meaning. tests/golden/wire/VERSION holds one frame
// of each message kind as that protocol version wrote it; fixed_messages.cc holds their meanings.
//
// Only decoding is tested against the bytes: fields added later make the structures wider, so a
// later version may write other bytes for the same meaning. LOOPFLEET_UPDATE_GOLDEN=1 writes
// missing files and never overwrites one. A structure without the zeros at its end is the same in
// all versions, so RandomJobs and RandomWorkers compare what is written, too.

#include <capnp/message.h>
#include <capnp/schema.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <variant>

#include "common/base/content_key.h"
#include "common/job/field_json.h"
#include "common/job/job_fields.h"
#include "common/job/outcome_json.h"
#include "common/wire/codec/codec.h"
#include "common/wire/codec/frame.h"
#include "common/wire/codec/submission_digest.h"
#include "schema/client.capnp.h"
#include "schema/worker.capnp.h"
#include "tests/support/paths.h"
#include "tests/unit/wire/codec/fixed_messages.h"
#include "tests/unit/wire/codec/random_messages.h"

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
TEST(Golden, RequestsOf13) { Check(FixedRequestsOf13(), DecodeClientRequest, "1.3"); }
TEST(Golden, RepliesOf13) { Check(FixedRepliesOf13(), DecodeCoordinatorReply, "1.3"); }
TEST(Golden, WorkerMessagesOf13) { Check(FixedWorkerMessagesOf13(), DecodeWorkerMessage, "1.3"); }
TEST(Golden, WorkerCommandsOf13) { Check(FixedWorkerCommandsOf13(), DecodeWorkerCommand, "1.3"); }
TEST(Golden, RequestsOf14) { Check(FixedRequestsOf14(), DecodeClientRequest, "1.4"); }
TEST(Golden, RepliesOf14) { Check(FixedRepliesOf14(), DecodeCoordinatorReply, "1.4"); }
TEST(Golden, WorkerMessagesOf14) { Check(FixedWorkerMessagesOf14(), DecodeWorkerMessage, "1.4"); }
TEST(Golden, WorkerCommandsOf14) { Check(FixedWorkerCommandsOf14(), DecodeWorkerCommand, "1.4"); }
TEST(Golden, Replies) { Check(FixedReplies(), DecodeCoordinatorReply); }
TEST(Golden, WorkerMessages) { Check(FixedWorkerMessages(), DecodeWorkerMessage); }
TEST(Golden, LaterReports) { Check(FixedLaterReports(), DecodeWorkerMessage); }
TEST(Golden, WorkerCommands) { Check(FixedWorkerCommands(), DecodeWorkerCommand); }

TEST(Golden, EveryKindHasItsFrame) {
  // Of UnknownMember there is none, and one kind of each came with 1.3, and one with 1.4.
  EXPECT_EQ(FixedRequests().size(), std::variant_size_v<ClientMessage> - 3);
  EXPECT_EQ(FixedReplies().size(), std::variant_size_v<CoordinatorMessage> - 3);
  EXPECT_EQ(FixedWorkerMessages().size(), std::variant_size_v<WorkerMessage> - 3);
  EXPECT_EQ(FixedWorkerCommands().size(), std::variant_size_v<WorkerCommand> - 3);
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

// The frame as canonical Cap'n Proto: zeros at the end of a structure are left out.
template <class Root>
std::string Canonical(std::string_view frame) {
  const auto canonical = DecodeFrame<Root>(frame, [](typename Root::Reader root) {
    const kj::Array<capnp::word> words = capnp::canonicalize(root);
    return std::string(words.asChars().begin(), words.asChars().size());
  });
  EXPECT_TRUE(canonical.has_value());
  return canonical.value_or("");
}

std::string HashOf(const Json& json) { return ContentKey::Of(json.dump()).ToString(); }

// The optional fields that differ from their defaults, by name and as job lines have them.
Json FieldsOf(const JobSpec& spec) {
  static const JobSpec kDefaults;
  Json fields = Json::object();
  ForEachField(
      [&](const JobField& field, const auto& value, const auto& when_unset) {
        if (value != when_unset) fields[field.name] = FieldJson<Json>(value);
      },
      spec, kDefaults);
  return fields;
}

TEST(Golden, RandomJobs) {
  RandomMessages random(12);
  SubmitJobs made{.request_id = random.AnUuid()};
  for (int i = 0; i < 40; ++i) made.jobs.push_back(random.Spec());
  const std::string golden =
      GoldenBytes("1.2/random_jobs.bin", Encode(ClientRequest{.message = made}));
  const auto decoded = DecodeClientRequest(golden);
  ASSERT_TRUE(decoded.has_value());
  const auto& submit = std::get<SubmitJobs>(decoded->message);
  ASSERT_EQ(submit.jobs.size(), 40u);
  Json fields;
  for (const JobSpec& spec : submit.jobs) fields.push_back(FieldsOf(spec));
  EXPECT_EQ(HashOf(fields), "c7516dac3c0229c1ef17b89133021138");
  EXPECT_EQ(SubmissionDigest(submit), "fb17e0ed9d03c6a31438656101695be49");
  EXPECT_EQ(Canonical<schema::ClientRequest>(Encode(*decoded)),
            Canonical<schema::ClientRequest>(golden));
}

TEST(Golden, RandomWorkers) {
  RandomMessages random(12);
  WorkerList made;
  for (int i = 0; i < 20; ++i) made.workers.push_back(random.Worker());
  const std::string golden =
      GoldenBytes("1.2/random_workers.bin", Encode(CoordinatorReply{.message = made}));
  const auto decoded = DecodeCoordinatorReply(golden);
  ASSERT_TRUE(decoded.has_value());
  const auto& workers = std::get<WorkerList>(decoded->message).workers;
  ASSERT_EQ(workers.size(), 20u);
  Json hardware;
  for (const WorkerInfo& worker : workers) hardware.push_back(HardwareJson(worker.hardware));
  EXPECT_EQ(HashOf(hardware), "42e37ae66d42d23f59b9828fafe83139");
  EXPECT_EQ(Canonical<schema::CoordinatorReply>(Encode(*decoded)),
            Canonical<schema::CoordinatorReply>(golden));
}

}  // namespace
}  // namespace loopfleet::wire
