#include "coordinator/core/tables/client_usage.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include "common/base/check.h"
#include "common/looptree/actions/action.h"

namespace loopfleet::coordinator {
namespace {

constexpr Nanos kBurst = std::chrono::seconds(1);

Nanos PriceOf(std::uint32_t per_second) { return kBurst / std::max(per_second, 1U); }

}  // namespace

std::uint64_t MemoryBytesOf(const JobSpec& spec) {
  constexpr std::uint64_t kJob = 1400;  // its spec and its entries in the tables, as measured
  std::uint64_t bytes = kJob + spec.tag.size() + spec.affinity.size() +
                        spec.actions.size() * sizeof(looptree::Action);
  bytes += std::visit([](const auto& source) { return source.text.size(); }, spec.source);
  for (const auto* texts : {&spec.labels, &spec.passes, &spec.observe}) {
    for (const std::string& text : *texts) bytes += sizeof(std::string) + text.size();
  }
  return bytes;
}

ClientUsage ClientUsageTable::Of(const Uuid& client) const {
  const auto load = loads_.find(client);
  return load == loads_.end() ? ClientUsage{} : load->second;
}

void ClientUsageTable::CloseBatch(const Uuid& client) {
  const auto load = loads_.find(client);
  LF_CHECK(load != loads_.end() && load->second.batches > 0, "a batch too many is closed");
  --load->second.batches;
}

void ClientUsageTable::Add(const Uuid& client, std::uint64_t jobs, std::uint64_t bytes) {
  ClientUsage& load = loads_[client];
  load.jobs += jobs;
  load.bytes += bytes;
  bytes_ += bytes;
}

void ClientUsageTable::Take(const Uuid& client, std::uint64_t jobs, std::uint64_t bytes) {
  const auto load = loads_.find(client);
  LF_CHECK(load != loads_.end() && load->second.jobs >= jobs && load->second.bytes >= bytes,
           "more is taken from a client than it has");
  load->second.jobs -= jobs;
  load->second.bytes -= bytes;
  bytes_ -= bytes;
}

Nanos ClientUsageTable::WaitOf(const Uuid& client, std::uint32_t per_second, Instant now) const {
  const Nanos owed = std::max(Of(client).paid_until, now) - now;
  return owed < kBurst ? Nanos{0} : owed - kBurst + PriceOf(per_second);
}

Nanos ClientUsageTable::Ask(const Uuid& client, std::uint32_t per_second, Instant now) {
  const Nanos wait = WaitOf(client, per_second, now);
  if (wait > Nanos{0}) return wait;
  ClientUsage& load = loads_[client];
  load.paid_until = std::max(load.paid_until, now) + PriceOf(per_second);
  return Nanos{0};
}

void ClientUsageTable::ForgetIdle(Instant now) {
  rows_seen_ += loads_.size();
  std::erase_if(loads_, [&](const auto& entry) {
    const ClientUsage& load = entry.second;
    return load.jobs == 0 && load.batches == 0 && load.paid_until <= now;
  });
}

}  // namespace loopfleet::coordinator
