#pragma once
// CrashVfs: a file system for SQLite, in memory, that does to files what disks do to them: what was
// written and not synced is lost, or partly there, when the power fails; writes and syncs fail;
// there is no room. While one is alive it is SQLite's default file system; one at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tests/simulation/dice.h"

struct sqlite3_vfs;

namespace loopfleet::simulation {

class CrashVfs {
 public:
  explicit CrashVfs(std::uint64_t seed);
  ~CrashVfs();
  CrashVfs(const CrashVfs&) = delete;
  CrashVfs& operator=(const CrashVfs&) = delete;

  // From the n-th change to a file on (writing, syncing, cutting, creating), nothing works any
  // more: the process is as good as dead. Ends with Restart().
  void DieAtChange(std::uint64_t n) { dies_in_ = n; }
  // The n-th change fails with EIO, and works again after that.
  void FailAtChange(std::uint64_t n) { fails_in_ = n; }
  void ForgetFailure() { fails_in_ = kNever; }
  void SetFull(bool full) { is_full_ = full; }  // nothing grows
  void IgnoreSync() { ignores_sync_ = true; }   // a planted bug

  // The process is dead: whatever it had open is closed to it. What it wrote is there.
  void KillProcess();
  // Besides, what was not synced is there in part, or not.
  void FailPower();
  // Another process begins.
  void Restart() { is_dead_ = false; }

  std::uint64_t changes() const { return changes_; }
  std::uint64_t power_failures() const { return power_failures_; }

  // ---- for the functions that SQLite calls
  struct File;
  enum class Change : std::uint8_t { kAllowed, kFails, kNoRoom };
  Change Allow(bool grows);
  std::shared_ptr<File> OpenFile(const char* name, bool create);
  bool Exists(const std::string& name) const { return files_.contains(name); }
  void Delete(const std::string& name) { files_.erase(name); }
  bool is_dead() const { return is_dead_; }
  std::uint64_t generation() const { return generation_; }
  bool ignores_sync() const { return ignores_sync_; }
  std::uint64_t Random() { return dice_.Next(); }
  static CrashVfs* current();

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  Dice dice_;
  std::map<std::string, std::shared_ptr<File>> files_;
  std::uint64_t generation_ = 1;  // handles of earlier ones are dead
  std::uint64_t dies_in_ = kNever;
  std::uint64_t fails_in_ = kNever;
  std::uint64_t changes_ = 0;
  std::uint64_t power_failures_ = 0;
  bool is_dead_ = false;
  bool is_full_ = false;
  bool ignores_sync_ = false;
};

}  // namespace loopfleet::simulation
