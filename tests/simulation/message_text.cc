#include "tests/simulation/message_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loopfleet::simulation {
namespace {

std::string TextOf(const wire::ClientHello& m) {
  return fmt::format("hello({})", m.client.ToString().substr(0, 4));
}
std::string TextOf(const wire::SubmitJobs& m) {
  return fmt::format("submit(request {}, {} jobs{}{})", m.request_id.ToString().substr(0, 6),
                     m.jobs.size(),
                     m.append_to ? fmt::format(", to batch {}", *m.append_to) : std::string(),
                     m.end == wire::BatchEnd::kComplete ? ", complete" : "");
}
std::string TextOf(const wire::FetchOutcomes& m) {
  return fmt::format("fetch(batch {} after {})", m.batch, m.after_sequence);
}
std::string TextOf(const wire::CancelBatch& m) { return fmt::format("cancel(batch {})", m.batch); }
std::string TextOf(const wire::ListBatches&) { return "list batches"; }
std::string TextOf(const wire::ShowBatch& m) { return fmt::format("show(batch {})", m.batch); }
std::string TextOf(const wire::ShowJob& m) { return fmt::format("show(job {})", m.job); }
std::string TextOf(const wire::ExplainJob& m) { return fmt::format("explain(job {})", m.job); }
std::string TextOf(const wire::ListWorkers&) { return "list workers"; }
std::string TextOf(const wire::SetDrain& m) {
  return fmt::format("{}({})", m.wish == wire::DrainAction::kDrain ? "drain" : "resume", m.target);
}
std::string TextOf(const wire::FlagResults& m) {
  return fmt::format("flag({} jobs from {})", m.jobs.size(), m.jobs.front());
}
std::string TextOf(const wire::ListOutcomes& m) {
  return fmt::format("list outcomes(after {}.{})", m.after.batch, m.after.sequence);
}
std::string TextOf(const wire::ShowFleet& m) {
  return fmt::format("show fleet(after {})", m.after_event);
}
std::string TextOf(const wire::FindBest& m) { return fmt::format("find best({})", m.max_jobs); }
std::string TextOf(const wire::BlobPiece& m) {
  return fmt::format("piece({} {} of {})", m.sha256.substr(0, 6), m.offset, m.total);
}
std::string TextOf(const wire::BlobHeld& m) { return fmt::format("held({})", m.bytes); }
std::string TextOf(const wire::BlobWanted& m) {
  return fmt::format("wanted({} from {})", m.sha256.substr(0, 6), m.offset);
}
std::string TextOf(const wire::WorkerBlobHeld& m) {
  return fmt::format("held({} {})", m.sha256.substr(0, 6), m.bytes);
}
std::string TextOf(const wire::JobList& m) { return fmt::format("{} jobs", m.jobs.size()); }
std::string TextOf(const wire::FleetInfo& m) { return fmt::format("fleet(epoch {})", m.epoch); }
std::string TextOf(const wire::UnknownMember& m) { return fmt::format("unknown({})", m.member); }

std::string TextOf(const wire::Welcome& m) { return fmt::format("welcome(epoch {})", m.epoch); }
std::string TextOf(const wire::Accepted& m) {
  return fmt::format("accepted(batch {}, {} jobs from {})", m.batch, m.job_count, m.first_index);
}
std::string TextOf(const wire::Refused& m) {
  return fmt::format("refused({}: {})", InfoOf(m.failure.code).name, m.failure.message);
}
std::string TextOf(const wire::OutcomePage& m) {
  std::string text = fmt::format("outcomes(batch {}, {} of {}:", m.batch.batch, m.batch.finished,
                                 m.batch.job_count);
  for (const Outcome& outcome : m.outcomes) {
    text += fmt::format(" #{} job {} {}", outcome.sequence, outcome.job.index,
                        OutcomeLabel(outcome.evaluation));
  }
  return text + ")";
}
std::string TextOf(const wire::BatchList& m) { return fmt::format("{} batches", m.batches.size()); }
std::string TextOf(const wire::BatchInfo& m) {
  return fmt::format("batch {}: {} of {}, state {}", m.batch, m.finished, m.job_count,
                     static_cast<int>(m.state));
}
std::string TextOf(const wire::JobExplanation& m) {
  return fmt::format("job {}: {}", m.job, m.reason);
}
std::string TextOf(const wire::JobInfo& m) { return fmt::format("job {}", m.job); }
std::string TextOf(const wire::WorkerList& m) {
  return fmt::format("{} workers", m.workers.size());
}

std::string TextOf(const wire::OutcomeList& m) {
  return fmt::format("{} outcomes, next {}.{}{}", m.outcomes.size(), m.next.batch, m.next.sequence,
                     m.is_end ? ", end" : "");
}

std::string TextOf(const wire::WorkerHello& m) {
  std::string text = fmt::format("hello({}, credit {}, held", m.name, m.credit);
  for (const auto& held : m.held) text += fmt::format(" {:x}", held.lease.value);
  return text + ")";
}
std::string TextOf(const wire::Heartbeat& m) {
  std::string text = m.drain == wire::DrainState::kDraining ? "heartbeat(draining" : "heartbeat(";
  for (const LeaseId lease : m.held) text += fmt::format(" {:x}", lease.value);
  return text + ")";
}
std::string TextOf(const wire::Reports& m) {
  std::string text = "reports(";
  for (const auto& report : m.reports) {
    text += fmt::format(" {:x} job {} {}", report.lease.value, report.job,
                        OutcomeLabel(report.evaluation));
  }
  return text + ")";
}
std::string Leases(const char* what, const std::vector<LeaseId>& leases) {
  std::string text = what;
  for (const LeaseId lease : leases) text += fmt::format(" {:x}", lease.value);
  return text + ")";
}
std::string TextOf(const wire::Goodbye& m) { return Leases("goodbye(", m.returned); }
std::string TextOf(const wire::Returned& m) { return Leases("returned(", m.leases); }
std::string TextOf(const wire::CodeLookup& m) {
  return fmt::format("code lookup({:x} {})", m.lease.value, m.code_hash);
}
std::string TextOf(const wire::CodeLookupAnswer& m) {
  return fmt::format("code lookup answer({:x} {})", m.lease.value, m.found ? "found" : "none");
}
std::string TextOf(const wire::GiveBack& m) { return Leases("give back(", m.leases); }
std::string TextOf(const wire::WorkerWelcome& m) {
  return fmt::format("welcome(epoch {})", m.epoch);
}
std::string TextOf(const wire::Leases& m) {
  std::string text = "leases(";
  for (const auto& lease : m.leases) {
    text += fmt::format(" {:x} job {} attempt {}", lease.lease.value, lease.job, lease.attempt);
  }
  return text + ")";
}
std::string TextOf(const wire::ReportsStored& m) { return Leases("stored(", m.leases); }
std::string TextOf(const wire::Revoke& m) { return Leases("revoke(", m.leases); }
std::string TextOf(const wire::HeartbeatAnswer&) { return "heartbeat answer"; }
std::string TextOf(const wire::HelloWanted&) { return "hello wanted"; }

template <class Variant>
std::string TextOfEither(const Variant& message) {
  return std::visit([](const auto& one) { return TextOf(one); }, message);
}

}  // namespace

std::string TextOf(const wire::ClientMessage& message) { return TextOfEither(message); }
std::string TextOf(const wire::CoordinatorMessage& message) { return TextOfEither(message); }
std::string TextOf(const wire::WorkerMessage& message) { return TextOfEither(message); }
std::string TextOf(const wire::WorkerCommand& command) { return TextOfEither(command); }

std::string ContentText(const wire::SubmitJobs& submit) {
  std::string text = fmt::format("{}/{}", submit.append_to ? submit.append_to->value : 0,
                                 static_cast<int>(submit.end));
  for (const JobSpec& job : submit.jobs) {
    text +=
        fmt::format("/{} {} {} {} {} {} {} {}", std::get<looptree::BenchmarkUri>(job.source).text,
                    job.tag, static_cast<int>(job.freshness), static_cast<int>(job.device),
                    job.priority, fmt::join(job.labels, ","), job.affinity, job.deadline_s);
  }
  return text;
}

double FingerprintOf(const Evaluation& evaluation) {
  return static_cast<double>(evaluation.scratch_bytes);
}

}  // namespace loopfleet::simulation
