#include "coordinator/core/tables/lease_table.h"

#include "common/base/check.h"

namespace loopfleet::coordinator {
namespace {

constexpr int kEpochShift = 40;
constexpr std::uint64_t kMaxCounter = (std::uint64_t{1} << kEpochShift) - 1;
constexpr std::uint64_t kMaxEpoch = (kLentBit >> kEpochShift) - 1;

std::uint64_t WithoutTerms(LeaseId lease) { return lease.value & ~kLentBit; }

}  // namespace

void LeaseTable::StartEpoch(std::uint64_t epoch) {
  LF_CHECK(epoch > 0 && epoch <= kMaxEpoch, "epoch {}", epoch);
  epoch_ = epoch;
}

std::uint64_t LeaseTable::last() const { return (epoch_ << kEpochShift) | counter_; }

LeaseRecord& LeaseTable::Grant(JobId job, const Uuid& worker, Instant now, Terms terms) {
  LF_CHECK(epoch_ != 0 && counter_ < kMaxCounter, "epoch {}, counter {}", epoch_, counter_);
  ++counter_;
  return Adopt(LeaseId{last() | (terms == Terms::kLent ? kLentBit : 0)}, job, worker, now);
}

bool LeaseTable::WasGranted(LeaseId lease) const {
  return WithoutTerms(lease) != 0 && WithoutTerms(lease) <= last();
}

bool LeaseTable::IsOfThisRun(LeaseId lease) const {
  return WithoutTerms(lease) >> kEpochShift == epoch_;
}

LeaseRecord& LeaseTable::Adopt(LeaseId lease, JobId job, const Uuid& worker, Instant now) {
  const auto [entry, added] = leases_.try_emplace(
      lease, LeaseRecord{.id = lease, .job = job, .worker = worker, .granted_at = now});
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
