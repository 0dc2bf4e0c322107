#pragma once
// FleetPage: the coordinator's web page, read-only. Serves its files (monitoring/page), and
//
//   /api/overview        the first screen's facts (fleet_view.h)
//   /api/live            the same as server-sent events, when they change, at most twice a second,
//                        once where more than 16 watch
//   /api/workers         every worker, as `loopfleet worker list --json`
//   /api/worker/ID       one, with its canaries and noise
//   /api/batch/ID        one, and its outcomes ?after=SEQUENCE (100 at a time), or ?newest
//   /api/job/BATCH.INDEX one, as job_view.h says
//
// One thread of its own reads the newest snapshot and the database, and makes the live bytes that
// all watchers share. It uses its own readers of the store and a lower priority. While the page is
// watched, it spends at most a hundredth of its time scanning outcomes, otherwise none: the first
// view after a pause may show the figures of the last one. The event loop only leaves snapshots.
// Answers to single questions are read on the server's threads, one at a time.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "coordinator/page/fleet_history.h"
#include "coordinator/page/fleet_view.h"
#include "coordinator/shell/fleet_snapshot.h"
#include "monitoring/live_feed.h"
#include "monitoring/site.h"
#include "storage/store.h"
#include "storage/store_reader.h"

namespace loopfleet::coordinator {

class FleetPage final : public monitoring::Site {
 public:
  struct Parts {
    const SnapshotBoard& board;
    const Clock& clock;
    storage::Store& store;
    std::function<wire::FleetHealth()> health;  // of the newest snapshot
    std::string version;
  };
  // Starts the thread. Errors: the database cannot be opened.
  static Result<std::unique_ptr<FleetPage>> Start(Parts parts);
  ~FleetPage() override;

  bool Has(std::string_view path) const override;
  monitoring::SiteReply Answer(const monitoring::SiteRequest& request) override;
  void CloseStreams() override { feed_.Close(); }

 private:
  struct Readers {
    std::unique_ptr<storage::StoreReader> live;       // of the thread
    std::unique_ptr<storage::StoreReader> questions;  // of the server's threads, guarded by asking_
  };
  FleetPage(Parts parts, Readers readers);

  void Run();
  void Look();
  bool IsWatched(Instant now) const;
  void LookAtOutcomes();
  monitoring::SiteReply Api(const monitoring::SiteRequest& request);
  monitoring::SiteReply Workers() const;
  monitoring::SiteReply WorkerOf(std::string_view id) const;
  monitoring::SiteReply BatchOf(std::string_view id, std::string_view query);
  monitoring::SiteReply JobOf(std::string_view id);

  const Parts parts_;
  const Readers readers_;
  monitoring::LiveFeed feed_{{}};

  // Used by the thread only.
  Instant looked_at_outcomes_{};
  Nanos outcomes_took_{0};
  std::uint64_t outcomes_seen_ = 0;  // on disk at that time
  bool has_digest_ = false;
  std::string last_sent_;  // without at_ms
  Instant sent_at_{};

  mutable std::mutex facts_mutex_;  // guards these, used by the thread and by answers:
  FleetHistory history_;
  OutcomeDigest digest_;
  std::shared_ptr<const std::string> overview_;

  std::mutex asking_;
  std::atomic<Instant> asked_at_{Instant{}};

  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;  // guarded by stop_mutex_
  std::thread thread_;
};

}  // namespace loopfleet::coordinator
