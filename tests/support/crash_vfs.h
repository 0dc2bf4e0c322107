#pragma once
// CrashVfs: a disk for SQLite that forgets what was not synced when the power fails, and that fails
// or fills at whichever operation a test says. Everything is in memory; while one exists, it is
// SQLite's default file system (so the code under test need not know).
//
// The model: what xSync made durable stays. Of the writes and truncations since, a power failure
// keeps any subset, in any order, and tears a write at any 512-byte sector. A deletion may come
// undone until its directory is synced: by the deletion itself where SQLite asks for that, or by
// the first sync of a journal or log after it was opened, as SQLite's own file system for Unix does
// (os_unix.c, UNIXFILE_DIRSYNC). Shared memory (of WAL) is lost.
//
// One thread at a time uses files, with any number of connections; others may arm, mend and count.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace loopfleet {

enum class DiskFault {
  kPowerFailure,  // at this operation, and nothing works any more until Reboot()
  kFull,          // SQLITE_FULL for what would write
  kIoError,       // SQLITE_IOERR_* for whatever it is
};

class CrashVfs {
 public:
  CrashVfs();
  ~CrashVfs();  // every connection must be closed
  CrashVfs(const CrashVfs&) = delete;
  CrashVfs& operator=(const CrashVfs&) = delete;

  // Operations that change the disk or make changes durable, since this was made or Reset.
  std::uint64_t operations() const;

  // Fails the operation with this number (the first is 1), and, if `lasting`, all after it.
  enum class Lasting { kOnce, kUntilMended };
  void FailAt(std::uint64_t operation, DiskFault fault, Lasting lasting = Lasting::kOnce);
  void Mend();          // no fault from now on (a power failure stays until Reboot)
  bool failed() const;  // has the fault happened?

  // The power is back: what was not durable is kept or lost as `seed` says. Every connection must
  // be closed (closing does nothing any more after a power failure).
  void Reboot(std::uint64_t seed);

  // A file as it is, durable at once.
  void Put(const std::filesystem::path& path, const std::string& bytes);
  std::string Get(const std::filesystem::path& path) const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace loopfleet
