#include "tests/simulation/planted/planted_disk_bug.h"

#include <utility>

#include "tests/simulation/disk/sqlite_disk.h"

namespace loopfleet::simulation {
namespace {

// Forwards to the wrapped disk, except for the functions that a bug overrides.
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
  coordinator::ResolvedJob Resolve(JobSpec spec,
                                   const coordinator::StoredConditions& conditions) override {
    return disk_.Resolve(std::move(spec), conditions);
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
  wire::CoordinatorMessage Answer(const wire::FindBest& find) override {
    return disk_.Answer(find);
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

// Reports each group as durable before it is written; it is written with the next one.
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

// Every third page shows changed outcomes.
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

class NeverSyncs final : public PlantedBug {
  std::unique_ptr<Disk> Wrap(Disk& disk) override {
    dynamic_cast<SqliteDisk&>(disk).files().IgnoreSyncs();
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
      {"change_an_outcome", "an outcome is not the same for each reader",
       Make<ChangesWhatWasRead>()},
      {"never_sync", "storage does not sync its files",
       [] { return std::make_unique<NeverSyncs>(); }, Medium::kSqlite},
  };
}

}  // namespace loopfleet::simulation
