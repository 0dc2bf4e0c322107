#pragma once
// SerialRunner: the leases of a simulated worker, which runs one job at a time, in the order of
// arrival.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "common/wire/message.h"
#include "worker/coordinator_link/lease_runner.h"

namespace loopfleet::simulation {

class SerialRunner : public worker::LeaseRunner {
 public:
  explicit SerialRunner(std::size_t max_held) : max_held_(max_held) {}

  bool Accept(wire::Lease lease) override {
    if (held_.size() >= max_held_) return false;
    if (!held_.emplace(lease.lease, lease.job).second) return true;  // sent twice
    waiting_.push_back(std::move(lease));
    RunNext();
    return true;
  }
  void Drop(std::span<const LeaseId> leases) override {
    for (const LeaseId lease : leases) {
      held_.erase(lease);
      std::erase_if(waiting_, [&](const wire::Lease& each) { return each.lease == lease; });
      std::erase_if(finished_, [&](const wire::Report& each) { return each.lease == lease; });
    }
  }
  std::vector<LeaseId> DropUnstarted() override {
    std::vector<LeaseId> dropped;
    for (const wire::Lease& lease : waiting_) dropped.push_back(lease.lease);
    waiting_.clear();
    for (const LeaseId lease : dropped) held_.erase(lease);
    return dropped;
  }
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override {
    std::vector<LeaseId> dropped;
    std::erase_if(waiting_, [&](const wire::Lease& each) {
      if (std::ranges::find(leases, each.lease) == leases.end()) return false;
      dropped.push_back(each.lease);
      return true;
    });
    for (const LeaseId lease : dropped) held_.erase(lease);
    return dropped;
  }
  std::vector<wire::Report> TakeFinished() override {
    for (const wire::Report& report : finished_) held_.erase(report.lease);
    return std::exchange(finished_, {});
  }
  std::vector<wire::HeldLease> Held() const override {
    std::vector<wire::HeldLease> held;
    for (const auto& [lease, job] : held_) held.push_back({.lease = lease, .job = job});
    return held;
  }

 protected:
  // Starts the job. Over() follows when it has run, unless the worker ends.
  virtual void Run(wire::Lease lease) = 0;
  void Over(wire::Report report) {
    is_running_ = false;
    if (held_.contains(report.lease)) finished_.push_back(std::move(report));
    RunNext();
  }

 private:
  void RunNext() {
    if (is_running_ || waiting_.empty()) return;
    is_running_ = true;
    wire::Lease lease = std::move(waiting_.front());
    waiting_.pop_front();
    Run(std::move(lease));
  }

  const std::size_t max_held_;
  std::deque<wire::Lease> waiting_;
  std::map<LeaseId, JobId> held_;
  std::vector<wire::Report> finished_;
  bool is_running_ = false;
};

}  // namespace loopfleet::simulation
