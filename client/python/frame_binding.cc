#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "client/python/bindings.h"
#include "client/python/conversion.h"
#include "client/python/job_binding.h"
#include "common/base/check.h"
#include "common/fleet/fleet_json.h"
#include "common/job/task.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

constexpr std::size_t kMessageBudget = wire::kMaxMessageBytes - wire::kMessageOverheadBytes;

nb::bytes Encoded(std::uint64_t number, wire::ClientMessage message) {
  std::string frame;
  {
    nb::gil_scoped_release unlocked;
    frame = wire::Encode(wire::ClientRequest{.number = number, .message = std::move(message)});
  }
  return BytesOf(frame);
}

nb::bytes EncodeHello(std::uint64_t number, const nb::bytes& client, const std::string& program) {
  return Encoded(number, wire::ClientHello{.client = UuidOf(client), .program = program});
}

// How many of the jobs fit one message; at least one, if there are any.
std::size_t JobsThatFit(const std::vector<const Job*>& jobs) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < jobs.size() && count < wire::kMaxJobsPerMessage) {
    bytes += wire::EncodedSize(jobs[count]->spec);
    if (bytes > kMessageBudget && count > 0) break;
    ++count;
  }
  return count;
}

// Places of the jobs that use what protocol 1.`minor` lacks.
std::vector<std::size_t> JobsBeyond(const std::vector<const Job*>& jobs, std::uint16_t minor) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (wire::MinorVersionFor(jobs[i]->spec) > minor) places.push_back(i);
  }
  return places;
}

nb::bytes EncodeSubmit(std::uint64_t number, const nb::bytes& request_id, std::uint64_t append_to,
                       const std::vector<const Job*>& jobs, bool more_follows) {
  wire::SubmitJobs message{.request_id = UuidOf(request_id)};
  if (append_to != 0) message.append_to = BatchId{append_to};
  message.end = more_follows ? wire::BatchEnd::kMoreFollows : wire::BatchEnd::kComplete;
  std::vector<const JobSpec*> specs;
  specs.reserve(jobs.size());
  for (const Job* job : jobs) specs.push_back(&job->spec);
  std::string frame;
  {
    nb::gil_scoped_release unlocked;
    frame = wire::EncodeSubmission(number, message, specs);
  }
  return BytesOf(frame);
}

nb::bytes EncodeFetch(std::uint64_t number, std::uint64_t batch, std::uint64_t after,
                      std::uint32_t wait_ms) {
  return Encoded(number, wire::FetchOutcomes{
                             .batch = BatchId{batch}, .after_sequence = after, .wait_ms = wait_ms});
}

std::optional<Failure> RefusalOf(const JobSpec& spec) {
  const auto resolved = TaskOf(spec).resolve(spec);
  return resolved ? std::nullopt : std::optional(resolved.error());
}

nb::object FailureOf(const Job& job, bool replay) {
  auto failure = wire::OutOfBounds(job.spec);
  if (!failure) failure = ValidateJob(job.spec);
  if (!failure && replay) failure = RefusalOf(job.spec);
  if (!failure) return nb::none();
  return nb::make_tuple(std::string(InfoOf(failure->code).name), failure->message,
                        failure->action_index);
}

nb::dict BatchDict(const wire::BatchInfo& info) {
  nb::dict dict;
  dict["batch"] = info.batch.value;
  dict["state"] = std::string(BatchStateName(info.state));
  dict["job_count"] = info.job_count;
  dict["finished"] = info.finished;
  dict["failed"] = info.failed;
  dict["from_store"] = info.from_store;
  return dict;
}

nb::object WorkerDict(const wire::WorkerInfo& info) {
  Json json = WorkerJson(info);
  json["peak_gflops"] = info.hardware.peaks.flop_per_second / 1e9;
  return ToPython(json);
}

// Converts a reply to (kind, content).
struct ReplyParts {
  nb::object operator()(const wire::Welcome& welcome) const {
    const auto& bytes = welcome.incarnation.bytes;
    return nb::make_tuple(
        "welcome",
        nb::make_tuple(welcome.coordinator, welcome.epoch,
                       nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                       welcome.version.minor));
  }
  nb::object operator()(const wire::Accepted& accepted) const {
    return nb::make_tuple(
        "accepted", nb::make_tuple(accepted.batch.value, accepted.first_index, accepted.job_count));
  }
  nb::object operator()(const wire::Refused& refused) const {
    const FailureInfo& info = InfoOf(refused.failure.code);
    const std::string text =
        refused.failure.message.empty() ? std::string(info.advice) : refused.failure.message;
    return nb::make_tuple("refused",
                          nb::make_tuple(std::string(info.name), text, refused.failure.action_index,
                                         refused.retry_after_ms, info.policy.is_retryable));
  }
  nb::object operator()(const wire::OutcomePage&) const {
    LF_CHECK(false, "a page is decoded in columns");
  }
  nb::object operator()(const wire::BatchInfo& info) const {
    return nb::make_tuple("batch", BatchDict(info));
  }
  nb::object operator()(const wire::BatchList& list) const {
    nb::list batches;
    for (const wire::BatchInfo& info : list.batches) batches.append(BatchDict(info));
    return nb::make_tuple("batches", batches);
  }
  nb::object operator()(const wire::WorkerList& list) const {
    nb::list workers;
    for (const wire::WorkerInfo& info : list.workers) workers.append(WorkerDict(info));
    return nb::make_tuple("workers", workers);
  }
  nb::object operator()(const wire::JobList& list) const {
    nb::list jobs;
    for (const wire::JobInfo& info : list.jobs) {
      if (info.outcome) jobs.append(nb::make_tuple(Job{info.spec}, RowOf(*info.outcome)));
    }
    return nb::make_tuple("jobs", jobs);
  }
  nb::object operator()(const wire::OutcomeList& list) const {
    nb::list outcomes;
    for (const Outcome& outcome : list.outcomes) outcomes.append(nb::cast(RowOf(outcome)));
    return nb::make_tuple("outcome_list", nb::make_tuple(outcomes, list.next.batch.value,
                                                         list.next.sequence, list.is_end));
  }
  nb::object operator()(const wire::BlobHeld& held) const {
    return nb::make_tuple("blob_held", nb::cast(held.bytes));
  }
  nb::object operator()(const wire::BlobPiece& piece) const {
    return nb::make_tuple("blob_piece", nb::make_tuple(piece.total, nb::bytes(piece.bytes.data(),
                                                                              piece.bytes.size())));
  }
  // What this client never asks for, or does not know.
  nb::object operator()(const auto&) const { return nb::make_tuple("unknown", nb::none()); }
};

nb::tuple DecodeReply(const nb::bytes& bytes) {
  const std::string_view frame(bytes.c_str(), bytes.size());
  std::optional<std::expected<std::variant<wire::CoordinatorReply, wire::ColumnPage>, Failure>>
      reply;
  {
    nb::gil_scoped_release unlocked;
    reply = wire::DecodeCoordinatorReplyInColumns(frame);
  }
  if (!*reply) Raise(reply->error());
  if (auto* page = std::get_if<wire::ColumnPage>(&**reply)) {
    return nb::make_tuple(
        page->number, "outcomes",
        nb::make_tuple(BatchDict(page->batch), RowsOf(std::move(page->outcomes))));
  }
  const auto& other = std::get<wire::CoordinatorReply>(**reply);
  const nb::object parts = std::visit(ReplyParts{}, other.message);
  return nb::make_tuple(other.number, parts[0], parts[1]);
}

// Encodes a page as a coordinator would, with at most `most_samples` samples per row. For tests and
// benchmarks of the client.
nb::bytes EncodePage(std::uint64_t number, std::uint64_t batch,
                     const std::vector<const OutcomeRow*>& outcomes, std::size_t most_samples) {
  wire::OutcomePage page;
  page.batch = {.batch = BatchId{batch},
                .client = Uuid::Random(),
                .state = wire::BatchState::kFinished,
                .job_count = static_cast<std::uint32_t>(outcomes.size()),
                .finished = static_cast<std::uint32_t>(outcomes.size())};
  for (const OutcomeRow* outcome : outcomes) {
    page.outcomes.push_back(outcome->Whole());
    page.outcomes.back().job.batch = BatchId{batch};
    page.outcomes.back().sequence = page.outcomes.size();
    auto* timed = std::get_if<Measurement>(&page.outcomes.back().evaluation.verdict);
    if (timed == nullptr) continue;
    Measurement& measurement = *timed;
    if (measurement.samples_ns.size() <= most_samples) continue;
    measurement.samples_ns.resize(most_samples);
    measurement.sample_flags.resize(most_samples);
  }
  return BytesOf(
      wire::Encode(wire::CoordinatorReply{.number = number, .message = std::move(page)}));
}

}  // namespace

void BindFrames(nb::module_& module) {
  module.def("encode_hello", &EncodeHello, "number"_a, "client"_a, "program"_a);
  module.def("encode_submit", &EncodeSubmit, "number"_a, "request_id"_a, "append_to"_a, "jobs"_a,
             "more_follows"_a = false, "append_to 0 opens a batch; the last message ends it.");
  module.def("jobs_that_fit", &JobsThatFit, "jobs"_a, "How many of the jobs one message holds.");
  module.def("jobs_beyond", &JobsBeyond, "jobs"_a, "minor"_a,
             "Places of the jobs that use what protocol 1.`minor` lacks.");
  module.def("encode_fetch", &EncodeFetch, "number"_a, "batch"_a, "after"_a, "wait_ms"_a);
  module.def(
      "encode_cancel",
      [](std::uint64_t number, std::uint64_t batch) {
        return Encoded(number, wire::CancelBatch{.batch = BatchId{batch}});
      },
      "number"_a, "batch"_a);
  module.def(
      "encode_list_workers",
      [](std::uint64_t number) { return Encoded(number, wire::ListWorkers{}); }, "number"_a);
  module.def(
      "encode_list_batches",
      [](std::uint64_t number, std::uint32_t most) {
        return Encoded(number, wire::ListBatches{.max_batches = most});
      },
      "number"_a, "most"_a);
  module.def(
      "encode_list_outcomes",
      [](std::uint64_t number, std::uint64_t batch, std::uint64_t sequence) {
        return Encoded(
            number, wire::ListOutcomes{.after = {.batch = BatchId{batch}, .sequence = sequence}});
      },
      "number"_a, "batch"_a, "sequence"_a, "Those of all clients after a place.");
  module.def(
      "encode_find_best",
      [](std::uint64_t number, const Job& job, const std::string& hardware_class,
         std::uint32_t limit) {
        return Encoded(
            number,
            wire::FindBest{.job = job.spec, .hardware_class = hardware_class, .max_jobs = limit});
      },
      "number"_a, "job"_a, "hardware_class"_a, "limit"_a);
  module.def(
      "encode_put_blob",
      [](std::uint64_t number, const std::string& sha256, std::uint64_t total, std::uint64_t offset,
         const nb::bytes& bytes) {
        return Encoded(number, wire::BlobPiece{.sha256 = sha256,
                                               .total = total,
                                               .offset = offset,
                                               .bytes = {bytes.c_str(), bytes.size()}});
      },
      "number"_a, "sha256"_a, "total"_a, "offset"_a, "bytes"_a);
  module.def(
      "encode_get_blob",
      [](std::uint64_t number, const std::string& sha256, std::uint64_t offset) {
        return Encoded(number, wire::BlobWanted{.sha256 = sha256, .offset = offset});
      },
      "number"_a, "sha256"_a, "offset"_a);
  module.def("decode_reply", &DecodeReply, "frame"_a,
             "(number, kind, content). JobError MALFORMED.");
  module.def("encode_page", &EncodePage, "number"_a, "batch"_a, "outcomes"_a,
             "most_samples"_a = wire::kMaxSamples);
  module.def("failure_of", &FailureOf, "job"_a, "replay"_a = false,
             "(code, message, action_index) of why a coordinator would refuse it, or None. With "
             "`replay`, also applies the actions and checks the work, or reads the passes.");
  module.attr("MAX_JOBS_PER_MESSAGE") = wire::kMaxJobsPerMessage;
  module.attr("MAX_BLOB_BYTES") = wire::kMaxBlobBytes;
  module.attr("MAX_BLOB_PIECE_BYTES") = wire::kMaxBlobPieceBytes;
}

}  // namespace loopfleet::python
