#include "coordinator/core/tables/lease_table.h"

#include "common/base/check.h"

namespace loopfleet::coordinator {
namespace {

constexpr int kEpochShift = 40;
constexpr std::uint64_t kMaxCounter = (std::uint64_t{1} << kEpochShift) - 1;
// The first bit stays unused: it once had a meaning of its own, and a worker older than this
// process may hold such a lease. It counts as never granted, so the worker is told to drop it.
constexpr std::uint64_t kMaxEpoch = (std::uint64_t{1} << (63 - kEpochShift)) - 1;

}  // namespace

void LeaseTable::StartEpoch(std::uint64_t epoch) {
  LF_CHECK(epoch > 0 && epoch <= kMaxEpoch, "epoch {}", epoch);
  epoch_ = epoch;
}

LeaseId LeaseTable::last() const { return {(epoch_ << kEpochShift) | counter_}; }

LeaseRecord& LeaseTable::Grant(JobId job, const Uuid& worker, Instant now) {
  LF_CHECK(epoch_ != 0 && counter_ < kMaxCounter, "epoch {}, counter {}", epoch_, counter_);
  ++counter_;
  LeaseRecord& lease = Adopt(last(), job, worker, now);
  lease.is_adopted = false;
  return lease;
}

bool LeaseTable::WasGranted(LeaseId lease) const { return lease.value != 0 && lease <= last(); }

bool LeaseTable::IsOfThisRun(LeaseId lease) const { return lease.value >> kEpochShift == epoch_; }

LeaseRecord& LeaseTable::Adopt(LeaseId lease, JobId job, const Uuid& worker, Instant now) {
  const auto [entry, added] = leases_.try_emplace(
      lease, LeaseRecord{
                 .id = lease, .job = job, .worker = worker, .granted_at = now, .is_adopted = true});
  LF_CHECK(added, "lease {} is out already", lease);
  return entry->second;
}

LeaseRecord* LeaseTable::Find(LeaseId lease) {
  const auto entry = leases_.find(lease);
  return entry == leases_.end() ? nullptr : &entry->second;
}

const LeaseRecord* LeaseTable::Find(LeaseId lease) const {
  const auto entry = leases_.find(lease);
  return entry == leases_.end() ? nullptr : &entry->second;
}

void LeaseTable::Remove(LeaseId lease) {
  LF_CHECK(leases_.erase(lease) == 1, "lease {} is not out", lease);
}

}  // namespace loopfleet::coordinator
