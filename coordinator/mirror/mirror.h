#pragma once
// Mirror: copies the finished outcomes of one coordinator's database into PostgreSQL
// (storage/postgres/archive.h), for as long as it runs. It reads the database as any reader does,
// so neither the coordinator nor its clients wait for it, or for PostgreSQL. What cannot be written
// now is tried again until it can.
//
// One thread at a time. Run() reads what follows on another one while PostgreSQL writes.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/fleet/mirror_model.h"
#include "storage/outcome_feed.h"
#include "storage/postgres/archive.h"
#include "storage/store_reader.h"

namespace loopfleet::coordinator {

class Mirror {
 public:
  struct Options {
    storage::PostgresArchive::Options archive;
    std::uint32_t most_rows = 5'000;               // of one transaction
    std::chrono::milliseconds poll_interval{200};  // while nothing waits
    bool once = false;  // end when nothing waits, and at the first trouble
  };
  using OnStatus = std::function<void(const MirrorModel&)>;
  Mirror(storage::StoreReader& reader, const Clock& clock, Options options, OnStatus on_status);

  // Runs until `stop`. An error: the database cannot be read, PostgreSQL refuses (kInvalid) from
  // the start, or `once` and it cannot be written to.
  Status Run(const std::atomic<bool>& stop);

 private:
  static constexpr std::chrono::seconds kFirstPause{1};  // after trouble, doubled each time
  static constexpr std::chrono::seconds kLongestPause{15};

  // Opens the archive and reads its position.
  Status Connect();
  // Mirrors the next outcomes. False: there are none.
  Result<bool> Step();
  Result<storage::FeedStep> ReadAfter(const storage::FeedPosition& position);
  // Writes the step while it reads the following one, if something waits.
  Status Append(const storage::FeedStep& step, const std::vector<storage::Doubt>& doubts);
  Status LookAtWhatWaits();
  // What to do about an error of the archive: nothing, or to end with it.
  Status Survive(const Error& error);
  void Tell();
  void Pause(Nanos duration, const std::atomic<bool>& stop);

  storage::StoreReader& reader_;
  const Clock& clock_;
  const Options options_;
  const OnStatus on_status_;
  std::unique_ptr<storage::PostgresArchive> archive_;   // null: to be opened
  storage::ArchivePosition position_;                   // as last known
  std::optional<Result<storage::FeedStep>> following_;  // what follows it, if it was read
  bool was_connected_ = false;
  MirrorModel status_;
};

}  // namespace loopfleet::coordinator
