#pragma once
// CrashVfs: an in-memory disk for SQLite that loses what was not synced when the power fails, and
// that fails or fills at the operation a test chooses. While one exists it is SQLite's default file
// system, so the code under test does not know about it. One at a time.
//
// The model: what xSync made durable stays. Of the writes and truncations since, a power failure
// keeps any subset, in any order, and tears a write at any 512-byte sector. A deletion may come
// undone until its directory is synced: by the deletion itself where SQLite asks for that, or by
// the first sync of a journal or log after it was opened, as SQLite's own file system for Unix does
// (os_unix.c, UNIXFILE_DIRSYNC). The shared memory of WAL is lost.
//
// One thread at a time uses files, with any number of connections; other threads may arm, mend and
// count. The seed decides SQLite's random numbers, so a run can be repeated.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace loopfleet {

enum class DiskFault {
  kDeath,    // of the process or the machine: nothing works until Restart() or Reboot()
  kFull,     // SQLITE_FULL for what would write
  kIoError,  // SQLITE_IOERR_* for whatever it is
};

class CrashVfs {
 public:
  explicit CrashVfs(std::uint64_t seed = 1);
  ~CrashVfs();  // every connection must be closed
  CrashVfs(const CrashVfs&) = delete;
  CrashVfs& operator=(const CrashVfs&) = delete;

  // Operations that change the disk or make changes durable, since the start or the last restart.
  std::uint64_t operations() const;

  // Fails the operation with this number (the first is 1), and, if `lasting`, all after it.
  enum class Lasting { kOnce, kUntilMended };
  void FailAt(std::uint64_t operation, DiskFault fault, Lasting lasting = Lasting::kOnce);
  void Mend();                 // no fault from now on, except a death
  bool failed() const;         // whether the fault has happened
  void SetFull(bool is_full);  // no file can grow
  void IgnoreSyncs();          // a planted bug: nothing becomes durable any more
  void Die();                  // now, as DiskFault::kDeath

  // After a death, once every connection is closed (closing does nothing then). Restart(): the
  // process ended; everything it wrote is there. Reboot(): the power failed; what was not durable
  // is kept or lost as `seed` says.
  void Restart();
  void Reboot(std::uint64_t seed);

  // A file as it is, durable at once.
  void Put(const std::filesystem::path& path, const std::string& bytes);
  std::string Get(const std::filesystem::path& path) const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace loopfleet
