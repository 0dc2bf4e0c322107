#pragma once
// PassJobs: runs the jobs of kind `passes`. Leases over one program are taken together, so that
// passes that they begin with alike run once (prefix_tree.h). One that fails in company is run
// again alone: its failure is its own. One thread; nothing is timed.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/job/pass_job.h"
#include "worker/coordinator_link/blob_exchange.h"
#include "worker/coordinator_link/lease_book.h"
#include "worker/evaluation/job_kind.h"
#include "worker/llvm_env/pass_process.h"
#include "worker/llvm_env/programs/program_source.h"

namespace loopfleet::worker {

class PassJobs final : public LeaseRunner {
 public:
  // After `heads_idle` without a job no state is kept for the next one.
  PassJobs(JobKind::Parts parts, ProgramSource::Options programs,
           Nanos heads_idle = std::chrono::seconds(30));
  ~PassJobs() override;  // waits for the batch in progress

  bool Accept(wire::Lease lease) override;
  void Drop(std::span<const LeaseId> leases) override { leases_.Drop(leases); }
  std::vector<LeaseId> DropUnstarted() override { return leases_.DropUnstarted(); }
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override {
    return leases_.GiveBack(leases);
  }
  std::vector<wire::Report> TakeFinished() override { return leases_.TakeFinished(); }
  std::vector<wire::HeldLease> Held() const override { return leases_.Held(); }
  std::vector<BlobQuestion> TakeBlobQuestions() override;
  void AnswerBlob(const BlobAnswer& answer) override { blobs_.Answer(answer); }

 private:
  using Bitcode = std::shared_ptr<const std::string>;
  // One lease on its way.
  struct Work {
    LeaseBook::Waiting waiting;
    PassJob job;
    Evaluation evaluation;  // complete but for the verdict
  };
  struct Program {
    std::string uri;
    Bitcode bitcode;
    std::uint64_t last_use = 0;
  };

  void Loop();
  // The leases that can be run; the others are reported.
  std::vector<Work> Prepare(std::vector<LeaseBook::Waiting> waiting);
  void Run(std::vector<Work> batch);
  std::expected<Bitcode, Failure> ProgramOf(const passes::ProgramUri& uri);
  std::expected<std::string, Failure> Obtain(const passes::ProgramUri& uri);
  // The verdict. Of what does not fit an outcome, the largest texts go to the coordinator first.
  std::expected<Observed, Failure> ObservedOf(const EpisodeResult& result, const PassJob& job,
                                              const BatchResult& batch);
  std::expected<Blob, Failure> KeepText(const StepValue& text);
  void Finish(Work work, Nanos took);

  JobKind::Parts parts_;
  const Nanos heads_idle_;
  BlobExchange blobs_;
  const ProgramSource source_;
  PassProcess process_;
  LeaseBook leases_;
  std::vector<Program> programs_;  // the last ones used; the thread's
  std::uint64_t uses_ = 0;
  std::thread thread_;
};

// For the daemon.
JobKind PassJobKind();

}  // namespace loopfleet::worker
