#include "coordinator/shell/postgres/shared_answers.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <variant>

#include "common/base/enum_names.h"
#include "common/job/task.h"
#include "coordinator/core/state/client_charge.h"

namespace loopfleet::coordinator {
namespace {

// Whether another coordinator's result may answer the job. An affinity binds it to a worker here,
// and results of GPUs are not shared (storage/postgres/shared_results.h).
bool MayBeAnswered(const ResolvedJob& job) {
  const auto* measure = std::get_if<ResolvedTask>(&job.resolution);
  return measure != nullptr && job.spec.freshness == Freshness::kAllowStored &&
         job.spec.affinity.empty() && measure->placement == Placement::kCpu &&
         TaskOf(job.spec).is_timed;
}

ContentKey NameOf(const storage::ResultKey& key) {
  return ContentKey::Of(fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", key.subject.ToString(), key.hardware_class,
      key.compiler.llvm, key.compiler.tier, key.compiler.revision, key.threads, EnumName(key.cache),
      key.policy, key.precision, EnumName(key.min_grade)));
}

}  // namespace

bool SharedAnswers::MayAsk(Instant now) const {
  return lookups_.IsOpen() && (asked_at_.empty() || now < asked_at_.front() + kPatience);
}

void SharedAnswers::Add(Submission submission, const StoredConditions& conditions) {
  const Instant now = clock_.Now();
  const std::uint64_t bytes = MemoryBytesOf(submission.jobs);
  job_count_ += submission.jobs.size();
  bytes_ += bytes;
  Waiting& waiting = waiting_.emplace_back(
      Waiting{.submission = std::move(submission), .bytes = bytes, .until = now + kPatience});
  if (MayAsk(now)) Ask(waiting, conditions);
}

void SharedAnswers::Ask(Waiting& waiting, const StoredConditions& conditions) {
  const WallTime now = clock_.WallNow();
  std::vector<storage::ResultKey> keys;
  std::map<std::pair<ContentKey, WallTime>, std::size_t> places;  // in waiting.asked
  for (std::size_t i = 0; i < waiting.submission.jobs.size(); ++i) {
    ResolvedJob& job = waiting.submission.jobs[i];
    if (!MayBeAnswered(job)) continue;
    const auto measure = std::get<ResolvedTask>(job.resolution);
    for (storage::ResultKey& key : KeysFor(job.spec, measure, conditions, now)) {
      const ContentKey name = NameOf(key);
      if (const auto known = FindRemembered(name, key.measured_since)) {
        Answer(job, known);
        break;
      }
      const auto [place, is_new] =
          places.try_emplace({name, key.measured_since}, waiting.asked.size());
      if (is_new) {
        waiting.asked.push_back({.name = name, .jobs = {}});
        keys.push_back(std::move(key));
      }
      waiting.asked[place->second].jobs.push_back(i);
    }
  }
  if (keys.empty()) return;
  waiting.question = ++last_question_;
  asked_at_.push_back(clock_.Now());
  lookups_.Ask(waiting.question, std::move(keys));
}

std::optional<Submission> SharedAnswers::TakeNext() {
  for (const SharedLookups::Answer& answer : lookups_.TakeAnswers()) TakeIn(answer);
  if (waiting_.empty()) return std::nullopt;
  Waiting& first = waiting_.front();
  if (first.question > last_answer_ && clock_.Now() < first.until) return std::nullopt;
  Submission submission = std::move(first.submission);
  job_count_ -= submission.jobs.size();
  bytes_ -= first.bytes;
  waiting_.pop_front();
  return submission;
}

void SharedAnswers::TakeIn(const SharedLookups::Answer& answer) {
  last_answer_ = answer.question;
  asked_at_.pop_front();
  for (Waiting& waiting : waiting_) {
    if (waiting.question != answer.question) continue;
    for (std::size_t i = 0; i < answer.found.size(); ++i) {
      if (answer.found[i] == nullptr) continue;
      const Asked& asked = waiting.asked[i];
      Remember(asked.name, answer.found[i]);
      for (const std::size_t job : asked.jobs) {
        Answer(waiting.submission.jobs[job], answer.found[i]);
      }
    }
  }
}

void SharedAnswers::Answer(ResolvedJob& job, const storage::StoredAnswer& answer) {
  if (!std::holds_alternative<ResolvedTask>(job.resolution)) return;  // by another key
  job.resolution = answer;
  metrics_.LookedUp(monitoring::LookupResult::kShared);
}

storage::StoredAnswer SharedAnswers::FindRemembered(const ContentKey& name,
                                                    WallTime measured_since) const {
  const auto known = remembered_.find(name);
  if (known == remembered_.end() || clock_.Now() >= known->second.until) return nullptr;
  return known->second.answer->measured_at < measured_since ? nullptr : known->second.answer;
}

void SharedAnswers::Remember(const ContentKey& name, const storage::StoredAnswer& answer) {
  if (remembered_.size() >= kMostRemembered) remembered_.clear();
  remembered_.insert_or_assign(name, Remembered{.answer = answer, .until = clock_.Now() + kMemory});
}

}  // namespace loopfleet::coordinator
