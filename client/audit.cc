#include "client/audit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/job/outcome_json.h"
#include "common/job/task.h"
#include "common/wire/hardware_label.h"

namespace loopfleet::client {
namespace {

// Failures of the tree itself that answer later jobs. WORKER_LOST and WORKER_CRASHED answer too,
// but are not audited: such a job has already taken down several workers.
bool IsAboutTheTree(FailureCode code) {
  using enum FailureCode;
  constexpr std::array kCodes = {kCompileError, kCompileTimeout,   kCompileOom,
                                 kRunTimeout,   kRunCrash,         kRunOom,
                                 kWrongOutput,  kSandboxViolation, kCut};
  return std::ranges::find(kCodes, code) != kCodes.end();
}

bool IsCut(const Opinion& opinion) {
  return opinion.failure && opinion.failure->code == FailureCode::kCut;
}

// A CUT means "slower than the bound".
bool AgreesWithCut(const Opinion& cut, const Opinion& figure) {
  return figure.high_ns * (1 + kAuditTolerance) >= static_cast<double>(cut.cut_above_ns);
}

bool IsComparable(const Conditions& a, const Conditions& b) {
  return a.hardware.hardware_class == b.hardware.hardware_class && a.compiler == b.compiler &&
         a.threads == b.threads && a.cache == b.cache && a.policy == b.policy;
}

bool CanMeasure(const AuditCase& audit, const wire::WorkerInfo& worker) {
  return worker.state == wire::WorkerState::kReady &&
         worker.hardware.hardware_class == audit.conditions.hardware.hardware_class &&
         worker.compiler == audit.conditions.compiler && worker.max_threads >= audit.spec.threads;
}

bool HasOpinion(const AuditCase& audit, const Witness& witness) {
  return std::ranges::any_of(
      audit.opinions, [&](const Opinion& opinion) { return IsSame(opinion.witness, witness); });
}

}  // namespace

JobSampler::JobSampler(std::vector<Batch> batches, std::uint64_t seed)
    : batches_(std::move(batches)), random_(seed) {
  for (const Batch& batch : batches_) size_ += batch.job_count;
}

std::optional<JobId> JobSampler::Next() {
  if (drawn_ == size_) return std::nullopt;
  const auto at = [&](std::uint64_t place) {
    const auto found = shuffled_.find(place);
    return found == shuffled_.end() ? place : found->second;
  };
  const std::uint64_t place = drawn_ + random_.Below(size_ - drawn_);
  std::uint64_t ordinal = at(place);
  shuffled_[place] = at(drawn_++);
  for (const Batch& batch : batches_) {
    if (ordinal < batch.job_count) {
      return JobId{.batch = batch.batch, .index = static_cast<std::uint32_t>(ordinal)};
    }
    ordinal -= batch.job_count;
  }
  return std::nullopt;
}

bool IsSame(const Witness& a, const Witness& b) {
  if (!a.key.empty() && !b.key.empty()) return a.key == b.key;
  return a.host == b.host;
}

Witness WitnessOf(const wire::WorkerInfo& worker) {
  Witness witness{.host = worker.hardware.host};
  for (const std::string& label : worker.labels) {
    if (label.starts_with(wire::kKeyLabel)) witness.key = label.substr(wire::kKeyLabel.size());
  }
  return witness;
}

Witness WitnessOf(const Outcome& outcome, Keys keys) {
  Witness witness;
  if (outcome.evaluation.conditions) witness.host = outcome.evaluation.conditions->hardware.host;
  const std::size_t slash = outcome.worker.find('/');
  if (keys == Keys::kInUse && slash != std::string::npos) {
    witness.key = outcome.worker.substr(0, slash);
  }
  return witness;
}

std::optional<Opinion> OpinionOf(const Outcome& outcome, const JobSpec& spec, Keys keys) {
  const Evaluation& evaluation = outcome.evaluation;
  if (outcome.source != OutcomeSource::kMeasured || !evaluation.conditions) return std::nullopt;
  if (evaluation.same_code) return std::nullopt;  // the figure may be another worker's
  const bool is_observed = evaluation.ok() && !evaluation.is_timed();
  if (is_observed && TaskOf(spec).kind != TaskKind::kPasses) return std::nullopt;
  Opinion opinion{
      .witness = WitnessOf(outcome, keys), .worker = outcome.worker, .job = outcome.job};
  if (!evaluation.ok()) {
    opinion.failure = evaluation.failure();
    if (IsCut(opinion)) opinion.cut_above_ns = spec.cut_above_ns;
    if (!IsAboutTheTree(opinion.failure->code)) return std::nullopt;
    return opinion;
  }
  if (is_observed) {
    opinion.observed = evaluation.observed();
    return opinion;
  }
  const Measurement& measurement = evaluation.measurement();
  const double median = measurement.elapsed_ns;
  opinion.elapsed_ns = median;
  opinion.low_ns = std::max(measurement.elapsed_low_ns, median * (1 - kMaxHalfWidth));
  opinion.high_ns = std::min(measurement.elapsed_high_ns, median * (1 + kMaxHalfWidth));
  return opinion;
}

bool Agree(const Opinion& a, const Opinion& b) {
  if (a.failure && b.failure) return a.failure->code == b.failure->code;
  if (IsCut(a)) return AgreesWithCut(a, b);
  if (IsCut(b)) return AgreesWithCut(b, a);
  if (a.failure || b.failure) return false;
  if (a.observed || b.observed) return a.observed == b.observed;
  return std::max(a.low_ns, b.low_ns) <= std::min(a.high_ns, b.high_ns) * (1 + kAuditTolerance);
}

std::optional<Odd> FindOutlier(std::span<const Opinion> opinions) {
  if (opinions.size() != 3) return std::nullopt;
  for (std::size_t which = 0; which < 3; ++which) {
    const Opinion& odd = opinions[which];
    const Opinion& a = opinions[(which + 1) % 3];
    const Opinion& b = opinions[(which + 2) % 3];
    if (!Agree(a, b) || Agree(a, odd) || Agree(b, odd)) continue;
    const auto has_figure = [](const Opinion& one) { return !one.failure && !one.observed; };
    if (!has_figure(a) || !has_figure(b) || !has_figure(odd)) {
      return Odd{.which = which, .kind = OddKind::kOther};
    }
    return Odd{.which = which,
               .kind = odd.high_ns < a.low_ns ? OddKind::kQuicker : OddKind::kSlower};
  }
  return std::nullopt;
}

std::string DifferencesOf(const Opinion& opinion, std::span<const Opinion> opinions) {
  constexpr std::size_t kMostText = 40;
  std::vector<std::string> differences;
  const Json values = ObservedJson(*opinion.observed);
  for (const auto& [name, value] : opinion.observed->values) {
    const auto differs = [&](const Opinion& other) {
      if (!other.observed) return false;
      const auto found = other.observed->values.find(name);
      return found == other.observed->values.end() || found->second != value;
    };
    if (std::ranges::none_of(opinions, differs)) continue;
    differences.push_back(fmt::format("{} {:.{}}", name, values.at(name).dump(), kMostText));
  }
  return fmt::format("{}", fmt::join(differences, ", "));
}

std::vector<JobId> InDoubt(std::span<const Opinion> opinions) {
  if (const auto odd = FindOutlier(opinions)) return {opinions[odd->which].job};
  std::vector<JobId> jobs;
  for (const Opinion& opinion : opinions) {
    const auto disagrees = [&](const Opinion& other) { return !Agree(opinion, other); };
    if (std::ranges::any_of(opinions, disagrees)) jobs.push_back(opinion.job);
  }
  return jobs;
}

std::optional<AuditCase> CaseOf(const wire::JobInfo& info, Keys keys) {
  if (!info.outcome) return std::nullopt;
  auto opinion = OpinionOf(*info.outcome, info.spec, keys);
  if (!opinion) return std::nullopt;
  return AuditCase{.spec = info.spec,
                   .conditions = *info.outcome->evaluation.conditions,
                   .opinions = {*std::move(opinion)}};
}

const wire::WorkerInfo* NextWitness(const AuditCase& audit, const wire::WorkerList& workers,
                                    SameHost same_host, SplitMix64& random) {
  std::vector<const wire::WorkerInfo*> others;
  std::vector<const wire::WorkerInfo*> any;
  for (const wire::WorkerInfo& worker : workers.workers) {
    if (!CanMeasure(audit, worker)) continue;
    any.push_back(&worker);
    if (!HasOpinion(audit, WitnessOf(worker))) others.push_back(&worker);
  }
  // If two hosts disagree, neither measures again: each witness has one vote.
  const bool is_of_one = std::ranges::all_of(audit.opinions, [&](const Opinion& opinion) {
    return IsSame(opinion.witness, audit.opinions.front().witness);
  });
  const bool may_repeat = same_host == SameHost::kAllowed && is_of_one && others.empty();
  const auto& from = may_repeat ? any : others;
  return from.empty() ? nullptr : from[random.Below(from.size())];
}

JobSpec AuditJob(const AuditCase& audit, const wire::WorkerInfo& worker) {
  const Opinion& stored = audit.opinions.front();
  const Witness witness = WitnessOf(worker);
  JobSpec spec = audit.spec;
  spec.freshness = Freshness::kMeasureAgain;
  spec.max_age_s = 0;
  spec.priority = 0;
  spec.affinity.clear();
  spec.deadline_s = 0;
  if (!IsCut(stored)) spec.cut_above_ns = 0;
  spec.device =
      worker.hardware.device == DeviceKind::kCuda ? DeviceRequest::kCuda : DeviceRequest::kCpu;
  spec.labels = {"host=" + witness.host};
  if (!witness.key.empty())
    spec.labels.push_back(fmt::format("{}{}", wire::kKeyLabel, witness.key));
  spec.tag = fmt::format(R"({{"audit":"{}"}})", stored.job);
  return spec;
}

bool AddOpinion(AuditCase& audit, const Outcome& outcome, Keys keys) {
  auto opinion = OpinionOf(outcome, audit.spec, keys);
  if (!opinion || !IsComparable(*outcome.evaluation.conditions, audit.conditions)) return false;
  audit.opinions.push_back(*std::move(opinion));
  return true;
}

}  // namespace loopfleet::client
