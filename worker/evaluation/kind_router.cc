#include "worker/evaluation/kind_router.h"

#include <iterator>

#include "common/job/task.h"

namespace loopfleet::worker {

template <class T, class Take>
std::vector<T> KindRouter::Gather(Take take) const {
  std::vector<T> all = take(rest_);
  for (const Route& route : routes_) {
    std::vector<T> more = take(*route.runner);
    all.insert(all.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  }
  return all;
}

bool KindRouter::Accept(wire::Lease lease) {
  const TaskKind kind = TaskOf(lease.spec).kind;
  for (const Route& route : routes_) {
    if (route.kind == kind) return route.runner->Accept(std::move(lease));
  }
  return rest_.Accept(std::move(lease));
}

void KindRouter::Drop(std::span<const LeaseId> leases) {
  rest_.Drop(leases);
  for (const Route& route : routes_) route.runner->Drop(leases);
}

std::vector<LeaseId> KindRouter::DropUnstarted() {
  return Gather<LeaseId>([](LeaseRunner& runner) { return runner.DropUnstarted(); });
}

std::vector<LeaseId> KindRouter::GiveBack(std::span<const LeaseId> leases) {
  return Gather<LeaseId>([&](LeaseRunner& runner) { return runner.GiveBack(leases); });
}

std::vector<wire::Report> KindRouter::TakeFinished() {
  return Gather<wire::Report>([](LeaseRunner& runner) { return runner.TakeFinished(); });
}

std::vector<BlobQuestion> KindRouter::TakeBlobQuestions() {
  return Gather<BlobQuestion>([](LeaseRunner& runner) { return runner.TakeBlobQuestions(); });
}

void KindRouter::AnswerBlob(const BlobAnswer& answer) {
  rest_.AnswerBlob(answer);
  for (const Route& route : routes_) route.runner->AnswerBlob(answer);
}

std::vector<wire::HeldLease> KindRouter::Held() const {
  return Gather<wire::HeldLease>([](const LeaseRunner& runner) { return runner.Held(); });
}

}  // namespace loopfleet::worker
