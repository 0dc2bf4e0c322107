#include "coordinator/core/handlers/client_quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "common/base/counted.h"
#include "coordinator/core/state/client_reply.h"

namespace loopfleet::coordinator {
namespace {

// Why these jobs exceed the client's quotas; empty if they do not.
std::optional<Failure> WhyOverQuota(const State& state, const Uuid& client, const Batch* batch,
                                    std::size_t jobs, std::uint64_t bytes) {
  const Limits& limits = state.limits;
  const ClientUsage load = state.usage.Of(client);
  const auto over = [](std::string message) {
    return Failure{.code = FailureCode::kQuotaExceeded, .message = std::move(message)};
  };
  if (load.jobs + jobs > limits.max_unfinished_jobs_per_client) {
    return over(fmt::format("{} unfinished (limit {})",
                            Counted(load.jobs, "job of this client is", "jobs of this client are"),
                            limits.max_unfinished_jobs_per_client));
  }
  if (load.bytes + bytes > limits.max_unfinished_bytes_per_client) {
    return over(fmt::format("the unfinished jobs of this client take {} bytes (limit {})",
                            load.bytes, limits.max_unfinished_bytes_per_client));
  }
  if (batch == nullptr && load.batches >= limits.max_unfinished_batches_per_client) {
    return over(fmt::format("{} unfinished (the limit)",
                            Counted(limits.max_unfinished_batches_per_client,
                                    "batch of this client is", "batches of this client are")));
  }
  return std::nullopt;
}

// The batch, if this client may append jobs to it; else null.
const Batch* OpenBatchOf(const State& state, const Uuid& client, BatchId id) {
  const Batch* batch = state.batches.Find(id);
  const bool is_open = batch != nullptr && batch->client == client && batch->open &&
                       batch->accepting != Accepting::kFirstMessage;
  return is_open ? batch : nullptr;
}

Failure TooOften(const State& state) {
  return {.code = FailureCode::kQuotaExceeded,
          .message = fmt::format(
              "this client asks more than {} a second",
              Counted(state.limits.max_requests_per_second_per_client, "time", "times"))};
}

}  // namespace

std::optional<Failure> CheckCapacity(const State& state, const Batch* batch,
                                     const Arriving& arriving) {
  const Limits& limits = state.limits;
  if (state.usage.bytes() + arriving.bytes > limits.max_unfinished_bytes) {
    return Failure{.code = FailureCode::kBusy,
                   .message = fmt::format("the unfinished jobs of all clients take {} bytes (limit "
                                          "{})",
                                          state.usage.bytes(), limits.max_unfinished_bytes)};
  }
  if (state.UnfinishedJobs() + arriving.jobs > limits.max_unfinished_jobs) {
    return Failure{.code = FailureCode::kBusy,
                   .message = fmt::format("{} unfinished (limit {})",
                                          Counted(state.UnfinishedJobs(), "job is", "jobs are"),
                                          limits.max_unfinished_jobs)};
  }
  if (batch == nullptr && state.batches.size() >= limits.max_unfinished_batches) {
    return Failure{
        .code = FailureCode::kBusy,
        .message = fmt::format("{} unfinished (the limit)",
                               Counted(limits.max_unfinished_batches, "batch is", "batches are"))};
  }
  const std::size_t in_batch = batch == nullptr ? 0 : batch->job_count;
  if (in_batch + arriving.jobs > limits.max_jobs_per_batch) {
    return Failure{.code = FailureCode::kQuotaExceeded,
                   .message = fmt::format("a batch has at most {}: start another one",
                                          Counted(limits.max_jobs_per_batch, "job", "jobs"))};
  }
  if (batch != nullptr && batch->held.size() >= limits.max_held_appends) {
    return Failure{.code = FailureCode::kBusy,
                   .message = fmt::format(
                       "batch {} has {} to be written", batch->id,
                       Counted(batch->held.size(), "message that waits", "messages that wait"))};
  }
  return std::nullopt;
}

std::optional<Failure> Validate(const State& state, const Uuid& client,
                                const std::optional<BatchId>& append_to) {
  if (state.service == Service::kDraining) {
    return Failure{.code = FailureCode::kShuttingDown,
                   .message = "the coordinator is shutting down"};
  }
  if (append_to && OpenBatchOf(state, client, *append_to) == nullptr) {
    return Failure{
        .code = FailureCode::kNotFound,
        .message = fmt::format("batch {} is not an open one of this client", *append_to)};
  }
  return std::nullopt;
}

std::optional<Failure> CheckQuota(const State& state, const Uuid& client, const Batch* batch,
                                  const Arriving& arriving) {
  if (auto why = CheckCapacity(state, batch, arriving)) return why;
  return WhyOverQuota(state, client, batch, arriving.jobs, arriving.bytes);
}

std::optional<Failure> CheckRequestRate(const State& state, const Uuid& client, Instant now) {
  const std::uint32_t most = state.limits.max_requests_per_second_per_client;
  if (state.usage.WaitOf(client, most, now) == Nanos{0}) return std::nullopt;
  return TooOften(state);
}

bool ExceedsRequestRate(Transaction& tx, const Asker& asker, const Uuid& client) {
  const std::uint32_t most = tx.limits().max_requests_per_second_per_client;
  const Nanos wait = tx.state.usage.Ask(client, most, tx.now.instant);
  if (wait == Nanos{0}) return false;
  const auto wait_ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count() + 1;
  RefuseFor(tx, asker, TooOften(tx.state), static_cast<std::uint32_t>(wait_ms));
  return true;
}

}  // namespace loopfleet::coordinator
