#pragma once
// MirrorProcess: runs loopfleet-mirror beside the coordinator (--results), starts it again when it
// ends, and knows how far it is. PostgreSQL can be slow, or gone: nothing here waits for it.
//
// The process is started and read by a thread of its own. Public methods: any thread.

#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/subprocess.h"
#include "common/fleet/mirror_model.h"

namespace loopfleet::coordinator {

class MirrorProcess {
 public:
  struct Options {
    std::filesystem::path program;  // loopfleet-mirror
    std::filesystem::path database;
    std::string results;  // of PostgreSQL, as libpq reads it
  };
  MirrorProcess(Options options, const Clock& clock);
  ~MirrorProcess();  // ends the process; what it has not copied, the next one will
  MirrorProcess(const MirrorProcess&) = delete;
  MirrorProcess& operator=(const MirrorProcess&) = delete;

  // Its last figures. While it is in trouble, or silent for longer than a moment, it counts as
  // behind, whatever waits: a process that hangs tells no trouble.
  MirrorModel state() const;
  // Whether it said a moment ago that all outcomes are copied.
  bool has_caught_up() const;

 private:
  static constexpr std::chrono::seconds kRestartPause{10};
  // It tells its figures each second, even if nothing waits, and none while it writes.
  static constexpr std::chrono::seconds kMoment{10};

  void Run();
  // Runs the process until it ends, and says why.
  std::string RunOnce();
  void OnLine(const std::string& line);
  void SetTrouble(std::string trouble);

  const Options options_;
  const Clock& clock_;
  const Instant started_at_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  MirrorModel state_;                     // guarded by mutex_
  Instant told_at_ = Instant::min();      // when its figures were told; guarded by mutex_
  std::optional<Instant> trouble_since_;  // guarded by mutex_
  std::thread thread_;                    // last: starts when everything else is there
};

}  // namespace loopfleet::coordinator
