// Coordinator to worker.

#include "common/wire/codec/blob_codec.h"
#include "common/wire/codec/codec.h"
#include "common/wire/codec/evaluation_codec.h"
#include "common/wire/codec/hello_codec.h"
#include "common/wire/codec/job_codec.h"
#include "schema/worker.capnp.h"

namespace loopfleet::wire {
namespace {

void WriteWelcome(const WorkerWelcome& welcome, schema::WorkerWelcome::Builder builder) {
  WriteVersion(welcome.version, builder.initVersion());
  builder.setEpoch(welcome.epoch);
  builder.setHeartbeatMs(welcome.heartbeat_ms);
  WriteCapabilities(welcome, builder);
  builder.setReferenceMhz(welcome.reference_mhz);
}

WorkerWelcome ReadWelcome(schema::WorkerWelcome::Reader reader) {
  if (reader.getHeartbeatMs() == 0) RefuseMalformed("heartbeat_ms is 0");
  return {.version = ReadVersion(reader.getVersion()),
          .epoch = reader.getEpoch(),
          .heartbeat_ms = reader.getHeartbeatMs(),
          .capabilities = ReadCapabilities(reader.getCapabilities()),
          .reference_mhz = ReadAmount(reader.getReferenceMhz(), "the reference clock")};
}

void WriteLease(const Lease& lease, schema::Lease::Builder builder) {
  builder.setLease(lease.lease.value);
  WriteJobId(lease.job, builder.initJob());
  builder.setAttempt(lease.attempt);
  WriteJobSpec(lease.spec, builder.initSpec());
}

Lease ReadLease(schema::Lease::Reader reader) {
  return {.lease = LeaseId{reader.getLease()},
          .job = ReadJobId(reader.getJob()),
          .attempt = reader.getAttempt(),
          .spec = ReadJobSpec(reader.getSpec())};
}

Leases ReadLeases(capnp::List<schema::Lease>::Reader list) {
  Leases leases;
  leases.leases.reserve(Bounded(list, kMaxLeasesPerMessage, "the list of leases").size());
  for (const auto lease : list) {
    if (lease.getLease() == 0) RefuseMalformed("a lease has the id 0");
    try {
      leases.leases.push_back(ReadLease(lease));
    } catch (const Refusal& refusal) {  // one job of a later version must not hold up the others
      leases.unreadable.push_back({.lease = LeaseId{lease.getLease()},
                                   .job = ReadJobId(lease.getJob()),
                                   .failure = refusal.failure});
    }
  }
  return leases;
}

void WriteCodeLookupAnswer(const CodeLookupAnswer& answer,
                           schema::CodeLookupAnswer::Builder builder) {
  builder.setLease(answer.lease.value);
  std::vector<const Evaluation*> rows;
  if (answer.found) rows.push_back(&*answer.found);
  WriteEvaluations(rows, builder.initFound());
}

CodeLookupAnswer ReadCodeLookupAnswer(schema::CodeLookupAnswer::Reader reader) {
  if (reader.getLease() == 0) RefuseMalformed("a lease has the id 0");
  CodeLookupAnswer answer{.lease = LeaseId{reader.getLease()}};
  std::vector<Evaluation> rows = ReadEvaluations(reader.getFound());
  if (rows.size() > 1) RefuseMalformed(fmt::format("{} evaluations for one lease", rows.size()));
  if (rows.empty()) return answer;
  if (!rows.front().is_timed())
    RefuseMalformed("no figure for a kernel with the same machine code");
  answer.found = std::move(rows.front());
  return answer;
}

struct CommandWriter {
  schema::WorkerCommand::Builder builder;
  void operator()(const WorkerWelcome& welcome) { WriteWelcome(welcome, builder.initWelcome()); }
  void operator()(const Leases& leases) {
    auto wire = builder.initLeases(static_cast<unsigned>(leases.leases.size()));
    for (unsigned i = 0; i < wire.size(); ++i) WriteLease(leases.leases[i], wire[i]);
  }
  void operator()(const ReportsStored& stored) {
    WriteIds<LeaseId>(stored.leases,
                      builder.initReportsStored(static_cast<unsigned>(stored.leases.size())));
  }
  void operator()(const Revoke& revoke) {
    WriteIds<LeaseId>(revoke.leases,
                      builder.initRevoke(static_cast<unsigned>(revoke.leases.size())));
  }
  void operator()(const HeartbeatAnswer&) { builder.setHeartbeatAnswer(); }
  void operator()(const HelloWanted&) { builder.setHelloWanted(); }
  void operator()(const Refused& refused) { WriteRefused(refused, builder.initRefused()); }
  void operator()(const GiveBack& back) {
    WriteIds<LeaseId>(back.leases, builder.initGiveBack(static_cast<unsigned>(back.leases.size())));
  }
  void operator()(const CodeLookupAnswer& answer) {
    WriteCodeLookupAnswer(answer, builder.initCodeLookupAnswer());
  }
  void operator()(const BlobPiece& piece) { WriteBlobPiece(piece, builder.initBlobPiece()); }
  void operator()(const WorkerBlobHeld& held) { WriteWorkerBlobHeld(held, builder.initBlobHeld()); }
  void operator()(const UnknownMember&) { LF_CHECK(false, "UnknownMember only comes of decoding"); }
};

std::vector<LeaseId> ReadLeaseIds(capnp::List<std::uint64_t>::Reader list) {
  return ReadIds<LeaseId>(list, kMaxLeasesPerMessage, "the list of leases");
}

WorkerCommand ReadCommand(schema::WorkerCommand::Reader reader) {
  switch (reader.which()) {
    case schema::WorkerCommand::NONE: RefuseMalformed("the command is empty");
    case schema::WorkerCommand::WELCOME: return ReadWelcome(reader.getWelcome());
    case schema::WorkerCommand::LEASES: return ReadLeases(reader.getLeases());
    case schema::WorkerCommand::REPORTS_STORED:
      return ReportsStored{.leases = ReadLeaseIds(reader.getReportsStored())};
    case schema::WorkerCommand::REVOKE: return Revoke{.leases = ReadLeaseIds(reader.getRevoke())};
    case schema::WorkerCommand::HEARTBEAT_ANSWER: return HeartbeatAnswer{};
    case schema::WorkerCommand::HELLO_WANTED: return HelloWanted{};
    case schema::WorkerCommand::GIVE_BACK:
      return GiveBack{.leases = ReadLeaseIds(reader.getGiveBack())};
    case schema::WorkerCommand::REFUSED: return ReadRefused(reader.getRefused());
    case schema::WorkerCommand::CODE_LOOKUP_ANSWER:
      return ReadCodeLookupAnswer(reader.getCodeLookupAnswer());
    case schema::WorkerCommand::BLOB_PIECE: return ReadBlobPiece(reader.getBlobPiece());
    case schema::WorkerCommand::BLOB_HELD: return ReadWorkerBlobHeld(reader.getBlobHeld());
  }
  return UnknownMember{.member = static_cast<std::uint16_t>(reader.which())};
}

}  // namespace

std::string Encode(const WorkerCommand& command) {
  return EncodeFrame<schema::WorkerCommand>(
      [&](schema::WorkerCommand::Builder builder) { std::visit(CommandWriter{builder}, command); });
}

std::expected<WorkerCommand, Failure> DecodeWorkerCommand(std::string_view frame) {
  return DecodeFrame<schema::WorkerCommand>(frame, ReadCommand);
}

}  // namespace loopfleet::wire
