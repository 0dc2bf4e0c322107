#include "worker/coordinator_link/code_lookups.h"

#include <utility>

namespace loopfleet::worker {

CodeLookups::Question::Question(CodeLookups& lookups, LeaseId lease, std::string code_hash)
    : lookups_(lookups), lease_(lease) {
  std::lock_guard lock(lookups_.mutex_);
  lookups_.questions_.try_emplace(lease);
  lookups_.asked_.push_back({.lease = lease, .code_hash = std::move(code_hash)});
}

CodeLookups::Question::~Question() {
  std::lock_guard lock(lookups_.mutex_);
  lookups_.questions_.erase(lease_);
  std::erase_if(lookups_.asked_,
                [&](const wire::CodeLookup& asked) { return asked.lease == lease_; });
}

std::optional<Evaluation> CodeLookups::Question::Await(Nanos patience) {
  std::unique_lock lock(lookups_.mutex_);
  std::optional<wire::CodeLookupAnswer>& answer = lookups_.questions_.at(lease_);
  lookups_.answered_.wait_for(lock, patience, [&] { return answer.has_value(); });
  return answer ? std::move(answer->found) : std::nullopt;
}

std::vector<wire::CodeLookup> CodeLookups::TakeAsked() {
  std::lock_guard lock(mutex_);
  return std::exchange(asked_, {});
}

void CodeLookups::Answer(wire::CodeLookupAnswer answer) {
  std::lock_guard lock(mutex_);
  const auto question = questions_.find(answer.lease);
  if (question == questions_.end()) return;  // the question has ended
  question->second = std::move(answer);
  answered_.notify_all();
}

}  // namespace loopfleet::worker
