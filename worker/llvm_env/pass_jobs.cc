#include "worker/llvm_env/pass_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <expected>
#include <functional>
#include <utility>

#include "common/base/base64.h"
#include "common/base/log.h"
#include "common/base/result.h"
#include "common/job/observed.h"
#include "common/llvm_passes/observation.h"
#include "common/llvm_passes/pass_sequence.h"
#include "common/wire/bounds.h"
#include "worker/evaluation/job_rebuild.h"
#include "worker/llvm_env/pass_child.h"

namespace loopfleet::worker {
namespace {

// Leases taken together. A report waits for the whole batch.
constexpr std::size_t kMostTogether = 64;
constexpr std::size_t kProgramsKept = 64;
constexpr std::size_t kProgramBytesKept = std::size_t{256} << 20;
// A batch that takes longer is ended, and each of its jobs without an answer is run alone.
constexpr std::chrono::minutes kBatchLimit{2};

struct ToObservedValue {
  passes::Observation observation;
  ObservedValue operator()(std::int64_t number) const { return static_cast<double>(number); }
  ObservedValue operator()(const std::vector<std::int64_t>& numbers) const {
    return std::vector<double>(numbers.begin(), numbers.end());
  }
  ObservedValue operator()(const std::vector<float>& numbers) const {
    return std::vector<double>(numbers.begin(), numbers.end());
  }
  ObservedValue operator()(const std::string& text) const {
    return passes::IsBinary(observation) ? Base64Of(text) : text;
  }
};

std::string NameOf(const StepValue& value) {
  return std::string(passes::InfoOf(value.observation).name);
}

Episode EpisodeOf(const PassJob& job) {
  const auto last = static_cast<std::uint32_t>(job.texts.size());
  Episode episode{.passes = job.texts, .wanted = {}};
  for (const passes::Observation observation : job.observations) {
    episode.wanted.push_back({.observation = observation, .steps = {last}});
  }
  return episode;
}

}  // namespace

PassJobs::PassJobs(JobKind::Parts parts, ProgramSource::Options programs, Nanos heads_idle)
    : parts_(std::move(parts)),
      heads_idle_(heads_idle),
      blobs_({}, parts_.on_output),
      source_(std::move(programs)),
      process_(parts_.fork_server, {.batch_limit = kBatchLimit}, parts_.on_restart),
      leases_(parts_.max_held),
      thread_([this] { Loop(); }) {}

PassJobs::~PassJobs() {
  leases_.Stop();
  blobs_.Stop();
  thread_.join();
}

bool PassJobs::Accept(wire::Lease lease) {
  return leases_.Accept(std::move(lease), parts_.clock.Now());
}

void PassJobs::Loop() {
  for (;;) {
    if (!leases_.AwaitNext(heads_idle_)) process_.DropHeads();
    auto next = leases_.Next();
    if (!next) return;
    const looptree::Source program = next->lease.spec.source;
    std::vector<LeaseBook::Waiting> waiting;
    waiting.push_back(*std::move(next));
    for (auto& more :
         leases_.TakeWaiting([&](const wire::Lease& lease) { return lease.spec.source == program; },
                             kMostTogether - 1)) {
      waiting.push_back(std::move(more));
    }
    if (auto batch = Prepare(std::move(waiting)); !batch.empty()) Run(std::move(batch));
  }
}

std::vector<PassJobs::Work> PassJobs::Prepare(std::vector<LeaseBook::Waiting> waiting) {
  std::vector<Work> batch;
  for (LeaseBook::Waiting& each : waiting) {
    if (!leases_.Start(each.lease.lease)) continue;
    Work work{.waiting = std::move(each), .job = {}, .evaluation = {}};
    Evaluation& evaluation = work.evaluation;
    evaluation.conditions = parts_.conditions;
    evaluation.stages[Stage::kQueue] = parts_.clock.Now() - work.waiting.accepted_at;
    const JobSpec& spec = work.waiting.lease.spec;
    const auto resolved = ResolveJob(spec, {.device = DeviceKind::kCpu}, evaluation);
    auto job = resolved ? PassJobOf(spec) : std::unexpected(resolved.error());
    if (job) {
      work.job = *std::move(job);
      batch.push_back(std::move(work));
    } else {
      evaluation.verdict = std::move(job).error();
      Finish(std::move(work), Nanos{0});
    }
  }
  return batch;
}

void PassJobs::Run(std::vector<Work> batch) {
  // Waiting for a program takes no core.
  const auto run = [this](const Bitcode& program, std::span<const Episode> episodes) {
    const Preparations::UnderWay under_way(parts_.preparations);
    return process_.Run(program, episodes);
  };
  const auto shared = static_cast<std::int64_t>(batch.size());
  const Instant start = parts_.clock.Now();
  const std::expected<Bitcode, Failure> program = ProgramOf(batch.front().job.program);
  const Instant made = parts_.clock.Now();
  std::expected<BatchResult, Failure> result = std::unexpected(Failure{});
  std::vector<Episode> episodes;
  for (const Work& work : batch) episodes.push_back(EpisodeOf(work.job));
  if (program) {
    result = run(*program, episodes);
  } else {
    result = std::unexpected(program.error());
  }
  const Nanos took = parts_.clock.Now() - made;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Work& work = batch[i];
    work.evaluation.stages[Stage::kReplay] = (made - start) / shared;
    std::expected<BatchResult, Failure> alone = std::unexpected(Failure{});
    const BatchResult* of = result ? &*result : nullptr;
    std::size_t place = i;
    Nanos again{0};
    // What another job did to the process, or to a state that both share, is not this job's fault.
    if (of != nullptr && batch.size() > 1 && of->episodes[i].failure &&
        leases_.IsHeld(work.waiting.lease.lease)) {
      const Instant begun = parts_.clock.Now();
      alone = run(*program, {&episodes[i], 1});
      again = parts_.clock.Now() - begun;
      of = alone ? &*alone : nullptr;
      place = 0;
    }
    std::expected<Observed, Failure> observed = std::unexpected(Failure{});
    if (!leases_.IsHeld(work.waiting.lease.lease)) {  // no client waits for it
      observed = std::unexpected(Failure{.code = FailureCode::kCancelled});
    } else if (of != nullptr) {
      observed = ObservedOf(of->episodes[place], work.job, *of);
    } else {
      observed = std::unexpected(result ? alone.error() : result.error());
    }
    if (observed) {
      work.evaluation.verdict = *std::move(observed);
    } else {
      work.evaluation.verdict = std::move(observed).error();
    }
    Finish(std::move(work), took / shared + again);
  }
}

std::expected<PassJobs::Bitcode, Failure> PassJobs::ProgramOf(const passes::ProgramUri& uri) {
  const std::string name = passes::ToString(uri);
  auto found = std::ranges::find(programs_, name, &Program::uri);
  if (found == programs_.end()) {
    LF_TRY(std::string bitcode, Obtain(uri));
    std::size_t bytes = bitcode.size();
    for (const Program& each : programs_) bytes += each.bitcode->size();
    while (!programs_.empty() && (programs_.size() >= kProgramsKept || bytes > kProgramBytesKept)) {
      const auto oldest = std::ranges::min_element(programs_, {}, &Program::last_use);
      bytes -= oldest->bitcode->size();
      programs_.erase(oldest);
    }
    programs_.push_back(
        {.uri = name, .bitcode = std::make_shared<const std::string>(std::move(bitcode))});
    found = std::prev(programs_.end());
  }
  found->last_use = ++uses_;
  return found->bitcode;
}

// The worker's own folder goes before the coordinator.
std::expected<std::string, Failure> PassJobs::Obtain(const passes::ProgramUri& uri) {
  auto bitcode = source_.BitcodeOf(uri);
  const auto* sent = std::get_if<passes::BitcodeProgram>(&uri);
  if (bitcode || sent == nullptr) return bitcode;
  auto fetched = blobs_.Fetch(sent->sha256);
  if (!fetched && source_.has_folder()) {
    fetched.error().message += "; " + bitcode.error().message;
  }
  return fetched;
}

std::vector<BlobQuestion> PassJobs::TakeBlobQuestions() {
  std::vector<BlobQuestion> questions;
  if (auto question = blobs_.TakeQuestion()) questions.push_back(*std::move(question));
  return questions;
}

std::expected<Observed, Failure> PassJobs::ObservedOf(const EpisodeResult& result,
                                                      const PassJob& job,
                                                      const BatchResult& batch) {
  if (result.failure) return std::unexpected(ToFailure(*result.failure));
  Observed observed;
  std::vector<const StepValue*> texts;
  for (const StepValue& each : result.values) {
    observed.values[NameOf(each)] = std::visit(ToObservedValue{each.observation}, each.value);
    if (std::holds_alternative<std::string>(each.value)) texts.push_back(&each);
  }
  observed.values["program"] = batch.module_hash;
  observed.values["commandline"] = passes::CommandLine(job.texts);
  observed.values["changed"] = std::vector<double>(result.changed.begin(), result.changed.end());
  std::ranges::sort(texts, std::greater(), [](const StepValue* each) {
    return std::get<std::string>(each->value).size();
  });
  for (const StepValue* text : texts) {
    if (BytesOf(observed) <= kMostObservedBytes) break;
    LF_TRY(observed.values[NameOf(*text)], KeepText(*text));
  }
  if (const std::size_t bytes = BytesOf(observed); bytes > kMostObservedBytes) {
    return std::unexpected(Failure{
        .code = FailureCode::kUnsupported,
        .message = fmt::format("what was to be observed has {} bytes, and an outcome holds {}: ask "
                               "for less of it",
                               bytes, kMostObservedBytes)});
  }
  return observed;
}

std::expected<Blob, Failure> PassJobs::KeepText(const StepValue& text) {
  const std::string& bytes = std::get<std::string>(text.value);
  if (bytes.size() <= wire::kMaxBlobBytes) return blobs_.Keep(bytes);
  return std::unexpected(Failure{.code = FailureCode::kUnsupported,
                                 .message = fmt::format("{} has {} bytes; at most {}", NameOf(text),
                                                        bytes.size(), wire::kMaxBlobBytes)});
}

void PassJobs::Finish(Work work, Nanos took) {
  const wire::Lease& lease = work.waiting.lease;
  Evaluation& evaluation = work.evaluation;
  evaluation.stages[Stage::kCompile] = took;
  parts_.metrics.JobCompleted(OutcomeLabel(evaluation));
  if (took > Nanos{0}) parts_.metrics.StageTook(StageName(Stage::kCompile), took);
  if (!evaluation.ok()) {
    log::Info("job.failed job={} lease={} code={} message=\"{}\"", lease.job, lease.lease,
              OutcomeLabel(evaluation), evaluation.failure().message);
  }
  if (leases_.Finish(
          {.lease = lease.lease, .job = lease.job, .evaluation = std::move(evaluation)})) {
    parts_.on_output();
  }
}

JobKind PassJobKind() {
  return {.kind = TaskKind::kPasses,
          .child = ChildRole::kPasses,
          .make_child = [](Isolation isolation) { return PassChildProgram({}, isolation); },
          .make_runner = [](JobKind::Parts parts) -> std::unique_ptr<LeaseRunner> {
            ProgramSource::Options programs{.programs = parts.llvm_programs};
            return std::make_unique<PassJobs>(std::move(parts), std::move(programs));
          }};
}

}  // namespace loopfleet::worker
