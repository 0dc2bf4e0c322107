#pragma once
// BatchWriter: builds one batch job by job, in messages of bounded size, holding no more than one
// message in memory. Belongs to the thread of its Client, which must outlive it.
//
// A batch without Finish() stays open at the coordinator: its jobs run, but the batch does not
// finish.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/client.h"
#include "common/job/job_spec.h"

namespace loopfleet::client {

class BatchWriter {
 public:
  explicit BatchWriter(Client& client) : client_(client) {}

  // Jobs are numbered 0, 1, 2 ... in the order of adding. Sends a message when one is full.
  // kInvalid: the job exceeds the bounds of a message (wire::OutOfBounds) and was not added.
  Answer<void> Add(JobSpec job);
  // Sends the remaining jobs and ends the batch.
  Answer<void> Finish();

  BatchId batch() const { return batch_; }  // none before the first message is accepted
  std::uint32_t accepted_jobs() const { return accepted_; }  // on the coordinator's disk

 private:
  Answer<void> Send(wire::BatchEnd end);

  Client& client_;
  BatchId batch_;
  std::uint32_t accepted_ = 0;
  std::vector<JobSpec> pending_;
  std::size_t pending_bytes_ = 0;
};

}  // namespace loopfleet::client
