// Messages that the decoder refuses although they can be read: values out of bounds, each with a
// code and a text that names the part.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "common/wire/codec/codec.h"
#include "tests/unit/wire/codec/fixed_messages.h"

namespace loopfleet::wire {
namespace {

JobSpec GoodSpec() {
  JobSpec spec;
  spec.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"};
  return spec;
}

struct BadSpec {
  std::string part;  // named by the text
  FailureCode code;
  std::function<void(JobSpec&)> spoil;
};

std::vector<BadSpec> BadSpecs() {
  using enum FailureCode;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto uri = [](std::string text) {
    return [=](JobSpec& spec) { spec.source = looptree::BenchmarkUri{text}; };
  };
  return {
      {"1025 actions", kLimitActions, [](JobSpec& s) { s.actions.assign(1025, looptree::Up{}); }},
      {"URI has", kMalformed, uri(std::string(kMaxUriBytes + 1, 'u'))},
      {"URI is not UTF-8", kMalformed, uri("\xc0\x80")},
      {"program's text is not UTF-8", kMalformed,
       [](JobSpec& s) { s.source = looptree::IrText{"\xff"}; }},
      {"the job needs", kMalformed,
       [](JobSpec& s) { s.source = looptree::IrText{std::string(kMaxJobBytes - 8, 'p')}; }},
      {"tag has", kMalformed, [](JobSpec& s) { s.tag.assign(kMaxTagBytes + 1, 't'); }},
      {"tag is not UTF-8", kMalformed, [](JobSpec& s) { s.tag = "\xed\xa0\x80"; }},
      {"affinity has", kMalformed, [](JobSpec& s) { s.affinity.assign(kMaxLabelBytes + 1, 'a'); }},
      {"an entry of labels has", kMalformed,
       [](JobSpec& s) { s.labels = {std::string(kMaxLabelBytes + 1, 'l')}; }},
      {"1025 passes", kLimitActions, [](JobSpec& s) { s.passes.assign(kMostPasses + 1, "-gvn"); }},
      {"an entry of passes has 513 bytes", kMalformed,
       [](JobSpec& s) { s.passes = {std::string(kMostPassBytes + 1, 'p')}; }},
      {"observe has 33 entries", kMalformed,
       [](JobSpec& s) { s.observe.assign(kMostObserved + 1, "InstCount"); }},
      {"labels has 65 entries", kMalformed,
       [](JobSpec& s) { s.labels.assign(kMaxLabels + 1, "l"); }},
      {"precision", kMalformed, [](JobSpec& s) { s.precision = kNan; }},
      {"budget_ms", kMalformed, [](JobSpec& s) { s.budget_ms = kInfinity; }},
      {"deadline_s", kMalformed, [](JobSpec& s) { s.deadline_s = -kInfinity; }},
      {"max_age_s", kMalformed, [](JobSpec& s) { s.max_age_s = kNan; }},
  };
}

TEST(Bounds, AGoodSpecIsWithin) { EXPECT_EQ(OutOfBounds(GoodSpec()), std::nullopt); }

TEST(Bounds, ATagIsJsonWhereItIsSubmitted) {
  JobSpec spec = GoodSpec();
  for (const char* good : {"", "7", "null", R"({"a": [1, "b"]})", "\"text\" "}) {
    spec.tag = good;
    EXPECT_EQ(CheckTag(spec), std::nullopt) << good;
  }
  for (const char* bad : {"text", "{", " ", "{} {}", "\"", "'a'", "NaN"}) {
    spec.tag = bad;
    const auto refusal = CheckTag(spec);
    ASSERT_TRUE(refusal.has_value()) << bad;
    EXPECT_EQ(refusal->code, FailureCode::kMalformed);
    const SubmitJobs submit{
        .request_id = Uuid::Random(), .append_to = {}, .jobs = {GoodSpec(), spec}};
    const auto decoded = DecodeClientRequest(Encode(ClientRequest{.number = 9, .message = submit}));
    ASSERT_FALSE(decoded.has_value()) << bad;
    EXPECT_EQ(decoded.error().failure.message, "job 1: " + refusal->message);
    // A job that was accepted earlier may still be sent, to its worker and to clients.
    EXPECT_EQ(OutOfBounds(spec), std::nullopt);
  }
}

TEST(Bounds, ATagIsNotNestedDeeperThanReadersCanFollow) {
  JobSpec spec = GoodSpec();
  const auto tag = [](std::size_t depth) {
    return R"({"\"[[[[[": [)" + std::string(depth - 1, '[') + std::string(depth - 1, ']') +
           R"(, {"[": "\\"}]})";
  };
  spec.tag = tag(kMaxTagNesting - 1);
  EXPECT_EQ(CheckTag(spec), std::nullopt);
  for (const std::size_t depth : {kMaxTagNesting, std::size_t{5000}}) {
    spec.tag = tag(depth);
    const auto refusal = CheckTag(spec);
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->code, FailureCode::kMalformed);
    EXPECT_EQ(refusal->message, "tag is nested deeper than 64");
  }
}

// Sender and receiver refuse the same jobs, and the receiver names the job.
TEST(Bounds, OfAJob) {
  for (const BadSpec& bad : BadSpecs()) {
    SCOPED_TRACE(bad.part);
    SubmitJobs submit{
        .request_id = Uuid::Random(), .append_to = {}, .jobs = {GoodSpec(), GoodSpec()}};
    bad.spoil(submit.jobs[1]);
    const auto refusal = OutOfBounds(submit.jobs[1]);
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->code, bad.code);
    EXPECT_NE(refusal->message.find(bad.part), std::string::npos) << refusal->message;

    const auto decoded = DecodeClientRequest(Encode(ClientRequest{.number = 9, .message = submit}));
    ASSERT_FALSE(decoded.has_value());
    EXPECT_EQ(decoded.error().number, 9u);
    EXPECT_EQ(decoded.error().failure.code, bad.code);
    EXPECT_EQ(decoded.error().failure.message, "job 1: " + refusal->message);
  }
}

void ExpectMalformed(const ClientMessage& message, std::string_view part) {
  const auto decoded = DecodeClientRequest(Encode(ClientRequest{.number = 5, .message = message}));
  ASSERT_FALSE(decoded.has_value()) << part;
  EXPECT_EQ(decoded.error().number, 5u);
  EXPECT_EQ(decoded.error().failure.code, FailureCode::kMalformed);
  EXPECT_NE(decoded.error().failure.message.find(part), std::string::npos)
      << decoded.error().failure.message;
}

TEST(Bounds, OfRequests) {
  ExpectMalformed(ClientHello{.client = Uuid{}}, "client's id is all zeros");
  ExpectMalformed(SubmitJobs{.request_id = Uuid{}}, "request's id is all zeros");
  ExpectMalformed(FetchOutcomes{.max_outcomes = 0}, "max_outcomes");
  ExpectMalformed(FetchOutcomes{.max_outcomes = kMaxOutcomesPerPage + 1}, "max_outcomes");
  ExpectMalformed(ListBatches{.max_batches = kMaxBatchesPerList + 1}, "max_batches");
  ExpectMalformed(FlagResults{}, "no jobs to flag");
  ClientHello hello{.client = Uuid::Random()};
  hello.capabilities.assign(kMaxLabels + 1, "x");
  ExpectMalformed(hello, "capabilities has 65 entries");
}

void ExpectMalformed(const WorkerMessage& message, std::string_view part) {
  const auto decoded = DecodeWorkerMessage(Encode(message));
  ASSERT_FALSE(decoded.has_value()) << part;
  EXPECT_EQ(decoded.error().code, FailureCode::kMalformed);
  EXPECT_NE(decoded.error().message.find(part), std::string::npos) << decoded.error().message;
}

TEST(Bounds, OfWorkerMessages) {
  WorkerHello hello = std::get<WorkerHello>(FixedWorkerMessages()[0].second);
  const auto with = [&](auto change) {
    WorkerHello changed = hello;
    change(changed);
    return changed;
  };
  ExpectMalformed(with([](auto& h) { h.worker = {}; }), "worker's id is all zeros");
  ExpectMalformed(with([](auto& h) { h.slots = 0; }), "without slots");
  ExpectMalformed(with([](auto& h) { h.credit = 0; }), "credit is 0");
  ExpectMalformed(with([](auto& h) { h.credit = kMaxLeasesPerMessage + 1; }), "credit is 4097");
  ExpectMalformed(with([](auto& h) { h.held[0].lease = {}; }), "id 0");
  ExpectMalformed(with([](auto& h) { h.hardware.clock_mhz = NAN; }), "clock");
  ExpectMalformed(with([](auto& h) { h.hardware.hardware_class = ""; }), "hardware class");
  const auto client = DecodeWorkerMessage(Encode(ClientRequest{
      .number = 1, .message = ClientHello{.client = Uuid::Random(), .program = "p"}}));
  ASSERT_FALSE(client.has_value());
  EXPECT_NE(client.error().message.find("clients have another address"), std::string::npos);
  for (const char* label : {"device=cuda", "isa=avx512", "host=n1", "key=n1"}) {
    ExpectMalformed(with([&](auto& h) { h.labels = {"quiet", label}; }), label);
  }
  ExpectMalformed(Heartbeat{.held = {LeaseId{0}}}, "id 0");
  ExpectMalformed(Heartbeat{.held = std::vector(kMaxLeasesPerMessage + 1, LeaseId{1})},
                  "held leases has 4097 entries");
  ExpectMalformed(Goodbye{.returned = {LeaseId{0}}}, "id 0");
  ExpectMalformed(CodeLookup{.lease = LeaseId{0}, .code_hash = "ab"}, "id 0");
  ExpectMalformed(CodeLookup{.lease = LeaseId{1}}, "without a code hash");
  ExpectMalformed(
      CodeLookup{.lease = LeaseId{1}, .code_hash = std::string(kMaxCodeHashBytes + 1, 'c')},
      "code hash");
}

TEST(Bounds, OfBlobs) {
  const std::string name(64, 'a');
  const auto expect = [](const BlobPiece& piece, std::string_view part) {
    const auto decoded = DecodeClientRequest(Encode(ClientRequest{.number = 1, .message = piece}));
    ASSERT_FALSE(decoded.has_value());
    EXPECT_EQ(decoded.error().failure.code, FailureCode::kMalformed);
    EXPECT_NE(decoded.error().failure.message.find(part), std::string::npos)
        << decoded.error().failure.message;
  };
  for (const std::string& bad : {std::string(63, 'a'), std::string(64, 'A'), std::string(64, '/'),
                                 "../" + std::string(61, 'a'), std::string()}) {
    expect({.sha256 = bad, .total = 1}, "hexadecimal");
    ExpectMalformed(ClientMessage(BlobWanted{.sha256 = bad}), "hexadecimal");
    ExpectMalformed(WorkerMessage(BlobWanted{.sha256 = bad}), "hexadecimal");
  }
  expect({.sha256 = std::string(65, 'a'), .total = 1}, "SHA-256");
  expect({.sha256 = name}, "without bytes");
  expect({.sha256 = name, .total = kMaxBlobBytes + 1}, "at most");
  expect({.sha256 = name, .total = 4, .offset = 2, .bytes = "abc"}, "beyond the blob's 4 bytes");
  expect(
      {.sha256 = name, .total = kMaxBlobBytes, .bytes = std::string(kMaxBlobPieceBytes + 1, 'x')},
      "a piece has");
  ExpectMalformed(WorkerMessage(BlobWanted{.sha256 = name, .offset = kMaxBlobBytes + 1}),
                  "at most");
  ExpectMalformed(WorkerMessage(BlobPiece{.sha256 = name}), "without bytes");
  const BlobPiece largest{
      .sha256 = name, .total = kMaxBlobBytes, .bytes = std::string(kMaxBlobPieceBytes, 'x')};
  EXPECT_TRUE(DecodeClientRequest(Encode(ClientRequest{.number = 1, .message = largest})));
}

// A bad measurement never looks like a good one (promise I11).
TEST(Bounds, OfMeasurements) {
  const auto spoil = [](auto change) {
    Reports reports = std::get<Reports>(FixedWorkerMessages()[2].second);
    change(std::get<Measurement>(reports.reports[0].evaluation.verdict));
    return reports;
  };
  ExpectMalformed(spoil([](auto& m) { m.elapsed_ns = 0; }), "no time above 0");
  ExpectMalformed(spoil([](auto& m) { m.elapsed_ns = -1; }), "no time above 0");
  ExpectMalformed(spoil([](auto& m) { m.elapsed_ns = NAN; }), "elapsed");
  ExpectMalformed(spoil([](auto& m) { m.elapsed_min_ns = 0; }), "no time above 0");
  ExpectMalformed(spoil([](auto& m) { m.elapsed_high_ns = INFINITY; }), "elapsedHigh");
  ExpectMalformed(spoil([](auto& m) { m.spread = NAN; }), "spread");
  ExpectMalformed(spoil([](auto& m) { m.samples_ns[1] = INFINITY; }), "samples");
  ExpectMalformed(
      spoil([](auto& m) { m.thinned = Thinned{.samples_before = 3, .accepted_before = 2}; }),
      "has 3 samples of 3");
  ExpectMalformed(
      spoil([](auto& m) { m.thinned = Thinned{.samples_before = 5, .accepted_before = 6}; }),
      "6 of them accepted");
  ExpectMalformed(spoil([](auto& m) {
                    m.thinned = Thinned{.samples_before = kMaxSamples + 1, .accepted_before = 2};
                  }),
                  "of 4097");
}

TEST(Bounds, OfCommands) {
  Evaluation failed;
  failed.verdict = Failure{.code = FailureCode::kRunCrash};
  for (const WorkerCommand& command : std::initializer_list<WorkerCommand>{
           WorkerWelcome{.heartbeat_ms = 0}, CodeLookupAnswer{.lease = LeaseId{0}},
           CodeLookupAnswer{.lease = LeaseId{1}, .found = failed}}) {
    const auto decoded = DecodeWorkerCommand(Encode(command));
    ASSERT_FALSE(decoded.has_value());
    EXPECT_EQ(decoded.error().code, FailureCode::kMalformed);
  }
}

}  // namespace
}  // namespace loopfleet::wire
