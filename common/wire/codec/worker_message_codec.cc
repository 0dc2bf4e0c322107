// Worker to coordinator.

#include "common/wire/codec/blob_codec.h"
#include "common/wire/codec/codec.h"
#include "common/wire/codec/column.h"
#include "common/wire/codec/evaluation_codec.h"
#include "common/wire/codec/facts_codec.h"
#include "common/wire/codec/hello_codec.h"
#include "common/wire/codec/job_codec.h"
#include "common/wire/hardware_label.h"
#include "schema/worker.capnp.h"

namespace loopfleet::wire {
namespace {

constexpr EnumTable kDrainStates{
    "drain state", std::array{std::pair{schema::DrainState::SERVING, DrainState::kServing},
                              std::pair{schema::DrainState::DRAINING, DrainState::kDraining}}};

constexpr EnumTable kCanaryStates{
    "canary state", std::array{std::pair{schema::CanaryState::STEADY, CanaryState::kSteady},
                               std::pair{schema::CanaryState::DRIFTING, CanaryState::kDrifting}}};

// UNNAMED (0) stands for none.
constexpr EnumTable kCanaryNames{
    "canary",
    std::array{std::pair{schema::Canary::UNNAMED, std::optional<Canary>{}},
               std::pair{schema::Canary::ARITHMETIC, std::optional(Canary::kArithmetic)},
               std::pair{schema::Canary::SECOND_CACHE, std::optional(Canary::kSecondCache)},
               std::pair{schema::Canary::MEMORY, std::optional(Canary::kMemory)}}};

LeaseId ReadLeaseId(std::uint64_t value) {
  if (value == 0) RefuseMalformed("a lease has the id 0");
  return LeaseId{value};
}

void WriteHello(const WorkerHello& hello, schema::WorkerHello::Builder builder) {
  WriteVersion(hello.version, builder.initVersion());
  builder.setWorker(DataOf(hello.worker));
  builder.setName(TextOf(FactText(hello.name)));
  builder.setPid(hello.pid);
  builder.setSlots(hello.slots);
  builder.setCredit(hello.credit);
  builder.setHttp(TextOf(FactText(hello.http)));
  WriteHardware(hello.hardware, builder.initHardware());
  WriteCompiler(hello.compiler, builder.initCompiler());
  builder.setPolicy(TextOf(FactText(hello.policy)));
  if (!hello.isolation.empty()) builder.setIsolation(TextOf(FactText(hello.isolation)));
  auto held = builder.initHeld(static_cast<unsigned>(hello.held.size()));
  for (unsigned i = 0; i < held.size(); ++i) {
    held[i].setLease(hello.held[i].lease.value);
    WriteJobId(hello.held[i].job, held[i].initJob());
  }
  WriteCapabilities(hello, builder);
  builder.setMaxThreads(hello.max_threads);
  if (!hello.labels.empty()) {
    WriteTexts(hello.labels, builder.initLabels(static_cast<unsigned>(hello.labels.size())));
  }
  if (!hello.hindrances.empty()) {
    WriteTexts(hello.hindrances,
               builder.initHindrances(static_cast<unsigned>(hello.hindrances.size())));
  }
}

std::vector<HeldLease> ReadHeld(capnp::List<schema::HeldLease>::Reader list) {
  std::vector<HeldLease> held;
  for (const auto entry : Bounded(list, kMaxLeasesPerMessage, "the held leases")) {
    held.push_back({.lease = ReadLeaseId(entry.getLease()), .job = ReadJobId(entry.getJob())});
  }
  return held;
}

WorkerHello ReadHello(schema::WorkerHello::Reader reader) {
  WorkerHello hello;
  hello.version = ReadVersion(reader.getVersion());
  hello.worker = ReadUuidNotNil(reader.getWorker(), "the worker's id");
  hello.name = ReadFact(reader.getName(), "the worker's name");
  hello.pid = reader.getPid();
  hello.slots = reader.getSlots();
  hello.credit = reader.getCredit();
  if (hello.slots == 0) RefuseMalformed("a worker without slots");
  if (hello.credit == 0 || hello.credit > kMaxLeasesPerMessage) {
    RefuseMalformed(fmt::format("credit is {}; 1 to {}", hello.credit, kMaxLeasesPerMessage));
  }
  hello.http = ReadFact(reader.getHttp(), "the worker's metrics address");
  hello.hardware = ReadHardware(reader.getHardware());
  // A client's hello reads as one of a worker that states nothing.
  if (hello.hardware.hardware_class.empty()) {
    RefuseMalformed("a worker without a hardware class; clients have another address");
  }
  hello.compiler = ReadCompiler(reader.getCompiler());
  hello.policy = ReadFact(reader.getPolicy(), "measuring policy");
  hello.isolation = ReadFact(reader.getIsolation(), "isolation");
  hello.held = ReadHeld(reader.getHeld());
  hello.capabilities = ReadCapabilities(reader.getCapabilities());
  hello.max_threads = reader.getMaxThreads();
  if (hello.max_threads == 0) RefuseMalformed("a worker whose kernels have no thread");
  hello.labels = ReadTexts(reader.getLabels(),
                           {.entries = kMaxLabels, .entry_bytes = kMaxLabelBytes}, "labels");
  for (const std::string& label : hello.labels) {
    if (IsHardwareLabel(label)) {
      RefuseMalformed(
          fmt::format("a worker claims the label '{}', which its hardware gives", label));
    }
  }
  hello.hindrances = ReadTexts(reader.getHindrances(), kHindranceBounds, "the hindrances");
  return hello;
}

void WriteHeartbeat(const Heartbeat& heartbeat, schema::Heartbeat::Builder builder) {
  builder.setDrain(kDrainStates.ToWire(heartbeat.drain));
  WriteIds<LeaseId>(heartbeat.held, builder.initHeld(static_cast<unsigned>(heartbeat.held.size())));
  builder.setCanaryRatio(heartbeat.canary_ratio);
  builder.setCanary(kCanaryStates.ToWire(heartbeat.canary));
  builder.setSteadySinceMs(heartbeat.steady_since_ms);
  builder.setDrifting(kCanaryNames.ToWire(heartbeat.drifting));
}

Heartbeat ReadHeartbeat(schema::Heartbeat::Reader reader) {
  return {.drain = kDrainStates.FromWire(reader.getDrain()),
          .held = ReadIds<LeaseId>(reader.getHeld(), kMaxLeasesPerMessage, "the held leases"),
          .canary_ratio = ReadAmount(reader.getCanaryRatio(), "canary ratio"),
          .canary = kCanaryStates.FromWire(reader.getCanary()),
          .steady_since_ms = reader.getSteadySinceMs(),
          .drifting = kCanaryNames.FromWire(reader.getDrifting())};
}

void WriteReports(const Reports& reports, schema::Reports::Builder builder) {
  LF_CHECK(reports.reports.size() <= kMaxReportsPerMessage, "{} reports", reports.reports.size());
  const auto count = static_cast<unsigned>(reports.reports.size());
  auto lease = builder.initLease(count);
  auto batch = builder.initBatch(count);
  auto index = builder.initIndex(count);
  std::vector<const Evaluation*> evaluations;
  evaluations.reserve(count);
  for (unsigned i = 0; i < count; ++i) {
    const Report& report = reports.reports[i];
    lease.set(i, report.lease.value);
    batch.set(i, report.job.batch.value);
    index.set(i, report.job.index);
    evaluations.push_back(&report.evaluation);
  }
  WriteEvaluations(evaluations, builder.initEvaluations());
}

Reports ReadReports(schema::Reports::Reader reader) {
  const EvaluationColumns evaluations = ReadEvaluationColumns(reader.getEvaluations());
  const std::uint32_t count = evaluations.rows();
  const auto lease = OneForEachRow(reader.getLease(), count, "lease");
  const auto batch = OneForEachRow(reader.getBatch(), count, "batch");
  const auto index = OneForEachRow(reader.getIndex(), count, "index");
  Reports reports;
  reports.reports.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    reports.reports.push_back({.lease = ReadLeaseId(lease[i]),
                               .job = {.batch = BatchId{batch[i]}, .index = index[i]},
                               .evaluation = evaluations.Row(i)});
  }
  return reports;
}

void WriteCodeLookup(const CodeLookup& lookup, schema::CodeLookup::Builder builder) {
  builder.setLease(lookup.lease.value);
  builder.setCodeHash(TextOf(lookup.code_hash));
}

CodeLookup ReadCodeLookup(schema::CodeLookup::Reader reader) {
  CodeLookup lookup{
      .lease = ReadLeaseId(reader.getLease()),
      .code_hash = ReadText(reader.getCodeHash(), kMaxCodeHashBytes, "the code hash")};
  if (lookup.code_hash.empty()) RefuseMalformed("a code lookup without a code hash");
  return lookup;
}

struct MessageWriter {
  schema::WorkerMessage::Builder builder;
  void operator()(const WorkerHello& hello) { WriteHello(hello, builder.initHello()); }
  void operator()(const Heartbeat& heartbeat) {
    WriteHeartbeat(heartbeat, builder.initHeartbeat());
  }
  void operator()(const Reports& reports) { WriteReports(reports, builder.initReports()); }
  void operator()(const Goodbye& goodbye) {
    WriteIds<LeaseId>(goodbye.returned,
                      builder.initGoodbye(static_cast<unsigned>(goodbye.returned.size())));
  }
  void operator()(const Returned& returned) {
    WriteIds<LeaseId>(returned.leases,
                      builder.initReturned(static_cast<unsigned>(returned.leases.size())));
  }
  void operator()(const CodeLookup& lookup) { WriteCodeLookup(lookup, builder.initCodeLookup()); }
  void operator()(const BlobWanted& wanted) { WriteBlobWanted(wanted, builder.initBlobWanted()); }
  void operator()(const BlobPiece& piece) { WriteBlobPiece(piece, builder.initPutBlob()); }
  void operator()(const UnknownMember&) { LF_CHECK(false, "UnknownMember only comes of decoding"); }
};

WorkerMessage ReadMessage(schema::WorkerMessage::Reader reader) {
  switch (reader.which()) {
    case schema::WorkerMessage::NONE: RefuseMalformed("the message is empty");
    case schema::WorkerMessage::HELLO: return ReadHello(reader.getHello());
    case schema::WorkerMessage::HEARTBEAT: return ReadHeartbeat(reader.getHeartbeat());
    case schema::WorkerMessage::REPORTS: return ReadReports(reader.getReports());
    case schema::WorkerMessage::GOODBYE:
      return Goodbye{.returned = ReadIds<LeaseId>(reader.getGoodbye(), kMaxLeasesPerMessage,
                                                  "the returned leases")};
    case schema::WorkerMessage::RETURNED:
      return Returned{.leases = ReadIds<LeaseId>(reader.getReturned(), kMaxLeasesPerMessage,
                                                 "the returned leases")};
    case schema::WorkerMessage::CODE_LOOKUP: return ReadCodeLookup(reader.getCodeLookup());
    case schema::WorkerMessage::BLOB_WANTED: return ReadBlobWanted(reader.getBlobWanted());
    case schema::WorkerMessage::PUT_BLOB: return ReadPutBlob(reader.getPutBlob());
  }
  return UnknownMember{.member = static_cast<std::uint16_t>(reader.which())};
}

}  // namespace

std::string Encode(const WorkerMessage& message) {
  return EncodeFrame<schema::WorkerMessage>(
      [&](schema::WorkerMessage::Builder builder) { std::visit(MessageWriter{builder}, message); });
}

std::expected<WorkerMessage, Failure> DecodeWorkerMessage(std::string_view frame) {
  return DecodeFrame<schema::WorkerMessage>(frame, ReadMessage);
}

}  // namespace loopfleet::wire
