#include "tests/simulation/planted/planted_disk_bug.h"

#include <utility>

#include "tests/simulation/disk/store_disk.h"

namespace loopfleet::simulation {
namespace {

// As the disk that it wraps, but for what a bug overrides.
class DiskBug : public Disk {
 public:
  explicit DiskBug(Disk& disk) : disk_(disk) {}

  Result<storage::Recovery> Open() override { return disk_.Open(); }
  void Close() override { disk_.Close(); }
  void CrashNow(Crash how, std::span<const storage::Write> under_way, Dice& dice) override {
    disk_.CrashNow(how, under_way, dice);
  }
  Status Apply(std::span<const storage::Write> writes) override { return disk_.Apply(writes); }
  void SetFull(bool full) override { disk_.SetFull(full); }
  void FailNextApply(Dice& dice) override { disk_.FailNextApply(dice); }
  coordinator::AdmittedJob Admit(JobSpec spec,
                                 const coordinator::StoredConditions& conditions) override {
    return disk_.Admit(std::move(spec), conditions);
  }
  Result<std::optional<storage::StoredRequest>> FindRequest(const Uuid& client,
                                                            const Uuid& request) override {
    return disk_.FindRequest(client, request);
  }
  wire::CoordinatorMessage Outcomes(const wire::FetchOutcomes& fetch) override {
    return disk_.Outcomes(fetch);
  }
  wire::CoordinatorMessage Answer(const wire::ListBatches& list) override {
    return disk_.Answer(list);
  }
  wire::CoordinatorMessage Answer(const wire::ShowBatch& show) override {
    return disk_.Answer(show);
  }
  wire::CoordinatorMessage Answer(const wire::ExplainJob& explain) override {
    return disk_.Answer(explain);
  }
  wire::CoordinatorMessage Answer(const wire::ListOutcomes& list) override {
    return disk_.Answer(list);
  }
  wire::CoordinatorMessage Job(JobId job,
                               const std::optional<coordinator::LiveJob>& live) override {
    return disk_.Job(job, live);
  }
  std::optional<storage::StoredJob> Find(JobId job) override { return disk_.Find(job); }
  std::vector<storage::StoredBatch> AllBatches() override { return disk_.AllBatches(); }

 protected:
  Disk& disk_;
};

// Says that a group is durable when it is only on its way; the next one takes it along.
class LazyDisk final : public DiskBug {
 public:
  using DiskBug::DiskBug;
  Status Apply(std::span<const storage::Write> writes) override {
    if (!held_.empty()) {
      if (const Status applied = disk_.Apply(held_); !applied) return applied;
    }
    held_.assign(writes.begin(), writes.end());
    return {};
  }
  void CrashNow(Crash how, std::span<const storage::Write>, Dice& dice) override {
    held_.clear();
    disk_.CrashNow(how, {}, dice);
  }
  void Close() override {
    if (!held_.empty()) (void)disk_.Apply(std::exchange(held_, {}));
    disk_.Close();
  }

 private:
  std::vector<storage::Write> held_;
};

void KeepJobs(storage::JobsAccepted& accepted, std::size_t count) {
  accepted.jobs.resize(count);
  if (!accepted.replayed.empty()) accepted.replayed.resize(count);
}

// A crash leaves half of a message's jobs.
class TornDisk final : public DiskBug {
 public:
  using DiskBug::DiskBug;
  void CrashNow(Crash how, std::span<const storage::Write> under_way, Dice& dice) override {
    std::vector<storage::Write> torn(under_way.begin(), under_way.end());
    if (!torn.empty()) {
      torn.resize(1);
      auto* accepted = std::get_if<storage::JobsAccepted>(&torn.front());
      if (accepted != nullptr) KeepJobs(*accepted, accepted->jobs.size() / 2);
    }
    disk_.CrashNow(how, torn, dice);
  }
};

// Says that there is no room after it has written.
class LateRefusal final : public DiskBug {
 public:
  using DiskBug::DiskBug;
  Status Apply(std::span<const storage::Write> writes) override {
    if (const Status applied = disk_.Apply(writes); !applied || ++applied_ % 4 != 0) return applied;
    return Fail(ErrorKind::kFull, "no room");
  }

 private:
  int applied_ = 0;
};

class WritesOneJobLess final : public DiskBug {
 public:
  using DiskBug::DiskBug;
  Status Apply(std::span<const storage::Write> writes) override {
    std::vector<storage::Write> less(writes.begin(), writes.end());
    for (storage::Write& write : less) {
      auto* accepted = std::get_if<storage::JobsAccepted>(&write);
      if (accepted != nullptr && accepted->jobs.size() > 2) {
        KeepJobs(*accepted, accepted->jobs.size() - 1);
      }
    }
    return disk_.Apply(less);
  }
};

class AnswersFreshOnes final : public DiskBug {
 public:
  using DiskBug::DiskBug;
  coordinator::AdmittedJob Admit(JobSpec spec,
                                 const coordinator::StoredConditions& conditions) override {
    const Freshness wanted = std::exchange(spec.freshness, Freshness::kStoredMayAnswer);
    coordinator::AdmittedJob job = disk_.Admit(std::move(spec), conditions);
    job.spec.freshness = wanted;
    return job;
  }
};

class AnswersForAnyAffinity final : public DiskBug {
 public:
  using DiskBug::DiskBug;
  coordinator::AdmittedJob Admit(JobSpec spec,
                                 const coordinator::StoredConditions& conditions) override {
    const std::string wanted = std::exchange(spec.affinity, {});
    coordinator::AdmittedJob job = disk_.Admit(std::move(spec), conditions);
    job.spec.affinity = wanted;
    return job;
  }
};

// Now and then a reader sees something else.
class ChangesWhatWasRead final : public DiskBug {
 public:
  using DiskBug::DiskBug;
  wire::CoordinatorMessage Outcomes(const wire::FetchOutcomes& fetch) override {
    auto reply = disk_.Outcomes(fetch);
    auto* page = std::get_if<wire::OutcomePage>(&reply);
    if (page != nullptr && ++read_ % 3 == 0) {
      for (Outcome& outcome : page->outcomes) ++outcome.attempts;
    }
    return reply;
  }

 private:
  int read_ = 0;
};

class RecoversFinishedJobs final : public DiskBug {
 public:
  using DiskBug::DiskBug;
  Result<storage::Recovery> Open() override {
    auto recovery = disk_.Open();
    if (!recovery) return recovery;
    for (const storage::StoredBatch& batch : recovery->unfinished) {
      const auto job = disk_.Find({.batch = batch.batch, .index = 0});
      if (job && job->outcome) {
        recovery->jobs.push_back({.job = {.batch = batch.batch, .index = 0}, .spec = job->spec});
      }
    }
    return recovery;
  }
};

class NeverSyncs final : public PlantedBug {
  std::unique_ptr<Disk> Wrap(Disk& disk) override {
    dynamic_cast<StoreDisk&>(disk).files().IgnoreSync();
    return nullptr;
  }
};

template <class Wrapper>
class Wraps final : public PlantedBug {
  std::unique_ptr<Disk> Wrap(Disk& disk) override { return std::make_unique<Wrapper>(disk); }
};
template <class Wrapper>
std::function<std::unique_ptr<PlantedBug>()> Make() {
  return [] { return std::make_unique<Wraps<Wrapper>>(); };
}

}  // namespace

std::vector<PlantedBugInfo> PlantedDiskBugs() {
  return {
      {"lazy_disk", "storage says that it is durable one group too early", Make<LazyDisk>()},
      {"torn_group", "a crash leaves half of a transaction", Make<TornDisk>()},
      {"late_refusal", "storage says that there is no room after it has written",
       Make<LateRefusal>()},
      {"one_job_less", "of several jobs the last is not written", Make<WritesOneJobLess>()},
      {"answer_fresh_ones", "jobs that want to be measured anew are answered from the store",
       Make<AnswersFreshOnes>()},
      {"answer_for_any_affinity", "the store answers with what another worker measured",
       Make<AnswersForAnyAffinity>()},
      {"change_an_outcome", "an outcome is not the same for each reader",
       Make<ChangesWhatWasRead>()},
      {"recover_finished_jobs", "a restarted coordinator takes up a job that is finished",
       Make<RecoversFinishedJobs>()},
      {"never_sync", "storage does not sync its files",
       [] { return std::make_unique<NeverSyncs>(); }, Medium::kSqlite},
  };
}

}  // namespace loopfleet::simulation
