// Client to coordinator.

#include <xxhash.h>

#include "common/wire/codec/blob_codec.h"
#include "common/wire/codec/codec.h"
#include "common/wire/codec/facts_codec.h"
#include "common/wire/codec/hello_codec.h"
#include "common/wire/codec/job_codec.h"

namespace loopfleet::wire {
namespace {

void WriteHello(const ClientHello& hello, schema::ClientHello::Builder builder) {
  WriteVersion(hello.version, builder.initVersion());
  builder.setClient(DataOf(hello.client));
  builder.setProgram(TextOf(FactText(hello.program)));
  WriteCapabilities(hello, builder);
}

ClientHello ReadHello(schema::ClientHello::Reader reader) {
  return {.version = ReadVersion(reader.getVersion()),
          .client = ReadUuidNotNil(reader.getClient(), "the client's id"),
          .program = ReadFact(reader.getProgram(), "the client's program"),
          .capabilities = ReadCapabilities(reader.getCapabilities())};
}

const JobSpec& Itself(const JobSpec& spec) { return spec; }
const JobSpec& Itself(const JobSpec* spec) { return *spec; }

template <class Jobs>
void WriteJobs(const Jobs& jobs, schema::SubmitJobs::Builder builder) {
  LF_CHECK(jobs.size() <= kMaxJobsPerMessage, "{} jobs", jobs.size());
  auto list = builder.initJobs(static_cast<unsigned>(jobs.size()));
  for (unsigned i = 0; i < list.size(); ++i) WriteJobSpec(Itself(jobs[i]), list[i]);
}

void WriteHead(const SubmitJobs& submit, schema::SubmitJobs::Builder builder) {
  if (submit.append_to) builder.setAppendTo(submit.append_to->value);
  builder.setMoreFollows(submit.end == BatchEnd::kMoreFollows);
}

// Everything but the request id.
void WriteContent(const SubmitJobs& submit, schema::SubmitJobs::Builder builder) {
  WriteHead(submit, builder);
  WriteJobs(submit.jobs, builder);
}

JobSpec ReadJobOfList(schema::JobSpec::Reader reader, unsigned index) {
  try {
    JobSpec spec = ReadJobSpec(reader);
    if (auto unreadable = CheckTag(spec)) throw Refusal{*std::move(unreadable)};
    return spec;
  } catch (Refusal& refusal) {
    refusal.failure.message = fmt::format("job {}: {}", index, refusal.failure.message);
    throw;
  }
}

SubmitJobs ReadSubmit(schema::SubmitJobs::Reader reader) {
  SubmitJobs submit;
  submit.request_id = ReadUuidNotNil(reader.getRequestId(), "the request's id");
  if (reader.getAppendTo() != 0) submit.append_to = BatchId{reader.getAppendTo()};
  submit.end = reader.getMoreFollows() ? BatchEnd::kMoreFollows : BatchEnd::kComplete;
  const auto jobs = Bounded(reader.getJobs(), kMaxJobsPerMessage, "the list of jobs");
  submit.jobs.reserve(jobs.size());
  for (unsigned i = 0; i < jobs.size(); ++i) submit.jobs.push_back(ReadJobOfList(jobs[i], i));
  return submit;
}

FetchOutcomes ReadFetch(schema::FetchOutcomes::Reader reader) {
  const std::uint32_t max = reader.getMaxOutcomes();
  if (max == 0 || max > kMaxOutcomesPerPage) {
    RefuseMalformed(fmt::format("max_outcomes is {}; 1 to {}", max, kMaxOutcomesPerPage));
  }
  return {.batch = BatchId{reader.getBatch()},
          .after_sequence = reader.getAfterSequence(),
          .max_outcomes = max,
          .wait_ms = reader.getWaitMs()};
}

ListBatches ReadListBatches(std::uint32_t max_batches) {
  if (max_batches > kMaxBatchesPerList) {
    RefuseMalformed(fmt::format("max_batches is {}; at most {}", max_batches, kMaxBatchesPerList));
  }
  return {.max_batches = max_batches};
}

void WriteSetDrain(const SetDrain& set, schema::SetDrain::Builder builder) {
  builder.setTarget(TextOf(FactText(set.target)));
  builder.setDrain(set.wish == DrainAction::kDrain);
  builder.setReason(TextOf(FactText(set.reason)));
  builder.setBy(TextOf(FactText(set.by)));
}

SetDrain ReadSetDrain(schema::SetDrain::Reader reader) {
  SetDrain set{.target = ReadFact(reader.getTarget(), "the target of a drain"),
               .wish = reader.getDrain() ? DrainAction::kDrain : DrainAction::kResume,
               .reason = ReadFact(reader.getReason(), "the reason of a drain"),
               .by = ReadFact(reader.getBy(), "who drains")};
  if (set.target.empty()) RefuseMalformed("a drain of nothing: name a host or a worker");
  return set;
}

void WriteListOutcomes(const ListOutcomes& list, schema::ListOutcomes::Builder builder) {
  builder.setAfterBatch(list.after.batch.value);
  builder.setAfterSequence(list.after.sequence);
  builder.setMaxOutcomes(list.max_outcomes);
  builder.setBenchmarkPrefix(TextOf(list.benchmark_prefix));
}

ListOutcomes ReadListOutcomes(schema::ListOutcomes::Reader reader) {
  const std::uint32_t max = reader.getMaxOutcomes();
  if (max == 0 || max > kMaxOutcomesPerPage) {
    RefuseMalformed(fmt::format("max_outcomes is {}; 1 to {}", max, kMaxOutcomesPerPage));
  }
  return {
      .after = {.batch = BatchId{reader.getAfterBatch()}, .sequence = reader.getAfterSequence()},
      .max_outcomes = max,
      .benchmark_prefix =
          ReadText(reader.getBenchmarkPrefix(), kMaxUriBytes, "the benchmark's prefix")};
}

void WriteFindBest(const FindBest& find, schema::FindBest::Builder builder) {
  WriteJobSpec(find.job, builder.initJob());
  builder.setHardwareClass(TextOf(FactText(find.hardware_class)));
  builder.setMaxJobs(find.max_jobs);
}

FindBest ReadFindBest(schema::FindBest::Reader reader) {
  const std::uint32_t max = reader.getMaxJobs();
  if (max == 0 || max > kMaxBestJobs) {
    RefuseMalformed(fmt::format("max_jobs is {}; 1 to {}", max, kMaxBestJobs));
  }
  return {.job = ReadJobSpec(reader.getJob()),
          .hardware_class = ReadFact(reader.getHardwareClass(), "the hardware class"),
          .max_jobs = max};
}

ShowFleet ReadShowFleet(schema::ShowFleet::Reader reader) {
  const std::uint32_t max = reader.getMaxEvents();
  if (max > kMaxEventsPerList) {
    RefuseMalformed(fmt::format("max_events is {}; at most {}", max, kMaxEventsPerList));
  }
  return {.after_event = reader.getAfterEvent(), .max_events = max};
}

void WriteFlagResults(const FlagResults& flag, schema::FlagResults::Builder builder) {
  LF_CHECK(flag.jobs.size() <= kMaxFlagsPerMessage, "{} flags", flag.jobs.size());
  auto jobs = builder.initJobs(static_cast<unsigned>(flag.jobs.size()));
  for (unsigned i = 0; i < jobs.size(); ++i) WriteJobId(flag.jobs[i], jobs[i]);
  builder.setReason(TextOf(FactText(flag.reason)));
}

FlagResults ReadFlagResults(schema::FlagResults::Reader reader) {
  FlagResults flag{.reason = ReadFact(reader.getReason(), "the reason of a flag")};
  for (const auto job : Bounded(reader.getJobs(), kMaxFlagsPerMessage, "the jobs to flag")) {
    flag.jobs.push_back(ReadJobId(job));
  }
  if (flag.jobs.empty()) RefuseMalformed("no jobs to flag");
  return flag;
}

struct RequestWriter {
  schema::ClientRequest::Builder builder;
  void operator()(const ClientHello& hello) { WriteHello(hello, builder.initHello()); }
  void operator()(const SubmitJobs& submit) {
    auto wire = builder.initSubmit();
    wire.setRequestId(DataOf(submit.request_id));
    WriteContent(submit, wire);
  }
  void operator()(const FetchOutcomes& fetch) {
    auto wire = builder.initFetchOutcomes();
    wire.setBatch(fetch.batch.value);
    wire.setAfterSequence(fetch.after_sequence);
    wire.setMaxOutcomes(fetch.max_outcomes);
    wire.setWaitMs(fetch.wait_ms);
  }
  void operator()(const CancelBatch& cancel) { builder.setCancelBatch(cancel.batch.value); }
  void operator()(const ListBatches& list) { builder.setListBatches(list.max_batches); }
  void operator()(const ShowBatch& show) { builder.setShowBatch(show.batch.value); }
  void operator()(const ShowJob& show) { WriteJobId(show.job, builder.initShowJob()); }
  void operator()(const ListWorkers&) { builder.setListWorkers(); }
  void operator()(const SetDrain& set) { WriteSetDrain(set, builder.initSetDrain()); }
  void operator()(const ListOutcomes& list) { WriteListOutcomes(list, builder.initListOutcomes()); }
  void operator()(const ShowFleet& show) {
    auto wire = builder.initShowFleet();
    wire.setAfterEvent(show.after_event);
    wire.setMaxEvents(show.max_events);
  }
  void operator()(const FlagResults& flag) { WriteFlagResults(flag, builder.initFlagResults()); }
  void operator()(const FindBest& find) { WriteFindBest(find, builder.initFindBest()); }
  void operator()(const BlobPiece& piece) { WriteBlobPiece(piece, builder.initPutBlob()); }
  void operator()(const BlobWanted& wanted) { WriteBlobWanted(wanted, builder.initGetBlob()); }
  void operator()(const ExplainJob& explain) { WriteJobId(explain.job, builder.initExplainJob()); }
  void operator()(const UnknownMember&) { LF_CHECK(false, "UnknownMember only comes of decoding"); }
};

ClientMessage ReadMessage(schema::ClientRequest::Reader reader) {
  switch (reader.which()) {
    case schema::ClientRequest::NONE: RefuseMalformed("the request is empty");
    case schema::ClientRequest::HELLO: return ReadHello(reader.getHello());
    case schema::ClientRequest::SUBMIT: return ReadSubmit(reader.getSubmit());
    case schema::ClientRequest::FETCH_OUTCOMES: return ReadFetch(reader.getFetchOutcomes());
    case schema::ClientRequest::CANCEL_BATCH:
      return CancelBatch{.batch = BatchId{reader.getCancelBatch()}};
    case schema::ClientRequest::LIST_BATCHES: return ReadListBatches(reader.getListBatches());
    case schema::ClientRequest::SHOW_BATCH:
      return ShowBatch{.batch = BatchId{reader.getShowBatch()}};
    case schema::ClientRequest::SHOW_JOB: return ShowJob{.job = ReadJobId(reader.getShowJob())};
    case schema::ClientRequest::LIST_WORKERS: return ListWorkers{};
    case schema::ClientRequest::SET_DRAIN: return ReadSetDrain(reader.getSetDrain());
    case schema::ClientRequest::LIST_OUTCOMES: return ReadListOutcomes(reader.getListOutcomes());
    case schema::ClientRequest::SHOW_FLEET: return ReadShowFleet(reader.getShowFleet());
    case schema::ClientRequest::FLAG_RESULTS: return ReadFlagResults(reader.getFlagResults());
    case schema::ClientRequest::FIND_BEST: return ReadFindBest(reader.getFindBest());
    case schema::ClientRequest::PUT_BLOB: return ReadPutBlob(reader.getPutBlob());
    case schema::ClientRequest::GET_BLOB: return ReadBlobWanted(reader.getGetBlob());
    case schema::ClientRequest::EXPLAIN_JOB:
      return ExplainJob{.job = ReadJobId(reader.getExplainJob())};
  }
  return UnknownMember{.member = static_cast<std::uint16_t>(reader.which())};
}

std::size_t ContentSize(const SubmitJobs& submit) {
  std::size_t bytes = kMessageOverheadBytes;
  for (const JobSpec& spec : submit.jobs) bytes += EncodedSize(spec);
  return bytes;
}

}  // namespace

std::string Encode(const ClientRequest& request) {
  return EncodeFrame<schema::ClientRequest>([&](schema::ClientRequest::Builder builder) {
    builder.setNumber(request.number);
    std::visit(RequestWriter{builder}, request.message);
  });
}

std::string EncodeSubmission(std::uint64_t number, const SubmitJobs& submit,
                             std::span<const JobSpec* const> jobs) {
  return EncodeFrame<schema::ClientRequest>([&](schema::ClientRequest::Builder builder) {
    builder.setNumber(number);
    auto wire = builder.initSubmit();
    wire.setRequestId(DataOf(submit.request_id));
    WriteHead(submit, wire);
    WriteJobs(jobs, wire);
  });
}

std::expected<ClientRequest, DecodeFailure> DecodeClientRequest(std::string_view frame) {
  std::uint64_t number = 0;
  auto request =
      DecodeFrame<schema::ClientRequest>(frame, [&](schema::ClientRequest::Reader reader) {
        number = reader.getNumber();
        return ClientRequest{.number = number, .message = ReadMessage(reader)};
      });
  if (!request) {
    return std::unexpected(DecodeFailure{.failure = std::move(request).error(), .number = number});
  }
  return *std::move(request);
}

RequestHead PeekAtRequest(std::string_view frame) {
  const auto peek = [](schema::ClientRequest::Reader reader) {
    RequestHead head{.number = reader.getNumber()};
    if (reader.isHello()) head.kind = RequestHead::Kind::kHello;
    if (reader.isSubmit()) head.kind = RequestHead::Kind::kSubmission;
    return head;
  };
  return DecodeFrame<schema::ClientRequest>(frame, peek).value_or(RequestHead{});
}

std::string ContentDigest(const SubmitJobs& submit) {
  // The canonical form omits default values, so a new field does not change the digests of requests
  // that do not use it. Stored digests must survive upgrades.
  capnp::MallocMessageBuilder builder(
      static_cast<unsigned>(ContentSize(submit) / sizeof(capnp::word)));
  auto content = builder.initRoot<schema::SubmitJobs>();
  WriteContent(submit, content);
  const kj::Array<capnp::word> canonical = capnp::canonicalize(content.asReader());
  const XXH128_hash_t hash =
      XXH3_128bits(canonical.begin(), canonical.size() * sizeof(capnp::word));
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace loopfleet::wire
