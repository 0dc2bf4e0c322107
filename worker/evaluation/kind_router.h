#pragma once
// KindRouter: gives each lease to the runner of its job's kind.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/job/task_kind.h"
#include "worker/coordinator_link/lease_runner.h"

namespace loopfleet::worker {

class KindRouter final : public LeaseRunner {
 public:
  struct Route {
    TaskKind kind;
    std::unique_ptr<LeaseRunner> runner;
  };
  // `rest`: for every other kind. It outlives the router.
  KindRouter(LeaseRunner& rest, std::vector<Route> routes)
      : rest_(rest), routes_(std::move(routes)) {}

  bool Accept(wire::Lease lease) override;
  void Drop(std::span<const LeaseId> leases) override;
  std::vector<LeaseId> DropUnstarted() override;
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override;
  std::vector<wire::Report> TakeFinished() override;
  std::vector<wire::HeldLease> Held() const override;
  std::vector<wire::CodeLookup> TakeCodeLookups() override { return rest_.TakeCodeLookups(); }
  void Answer(wire::CodeLookupAnswer answer) override { rest_.Answer(std::move(answer)); }
  std::vector<BlobQuestion> TakeBlobQuestions() override;
  void AnswerBlob(const BlobAnswer& answer) override;

 private:
  // The results of all runners, one after the other.
  template <class T, class Take>
  std::vector<T> Gather(Take take) const;

  LeaseRunner& rest_;
  std::vector<Route> routes_;
};

}  // namespace loopfleet::worker
