#include "tests/simulation/disk/crash_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace loopfleet::simulation {

struct CrashVfs::File {
  struct Unsynced {
    std::size_t offset = 0;
    std::string bytes;
    bool is_cut = false;  // to `offset` bytes
  };
  std::string bytes;               // as processes see it
  std::string durable;             // as of the last sync
  std::vector<Unsynced> unsynced;  // since then, in order
  bool was_synced = false;

  // Locks of the file as a whole, and of the shared memory that goes with it.
  std::map<const void*, int> locks;
  std::vector<std::unique_ptr<char[]>> shared;
  std::array<std::map<const void*, bool>, SQLITE_SHM_NLOCK> shared_locks;  // exclusive?
  int shared_users = 0;
  std::vector<std::unique_ptr<char[]>> shared_of_the_dead;
};

namespace {

constexpr std::size_t kSector = 512;  // what a disk writes whole

CrashVfs* current_vfs = nullptr;

struct Handle {
  sqlite3_file base;
  std::shared_ptr<CrashVfs::File> file;
  std::uint64_t generation = 0;
  bool uses_shared = false;

  bool is_dead() const {
    return current_vfs == nullptr || current_vfs->is_dead() ||
           generation != current_vfs->generation();
  }
};

Handle& HandleOf(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }

int CodeOf(CrashVfs::Change change, int failure) {
  return change == CrashVfs::Change::kAllowed  ? SQLITE_OK
         : change == CrashVfs::Change::kNoRoom ? SQLITE_FULL
                                               : failure;
}

int Close(sqlite3_file* base) {
  Handle& handle = HandleOf(base);
  handle.file->locks.erase(&handle);
  handle.~Handle();
  return SQLITE_OK;
}

int Read(sqlite3_file* base, void* to, int size, sqlite3_int64 offset) {
  Handle& handle = HandleOf(base);
  if (handle.is_dead()) return SQLITE_IOERR_READ;
  const std::string& bytes = handle.file->bytes;
  const auto start = std::min(static_cast<std::size_t>(offset), bytes.size());
  const auto there = std::min(static_cast<std::size_t>(size), bytes.size() - start);
  std::memcpy(to, bytes.data() + start, there);
  if (there == static_cast<std::size_t>(size)) return SQLITE_OK;
  std::memset(static_cast<char*>(to) + there, 0, static_cast<std::size_t>(size) - there);
  return SQLITE_IOERR_SHORT_READ;
}

void Put(std::string& bytes, std::size_t offset, std::string_view what) {
  if (bytes.size() < offset + what.size()) bytes.resize(offset + what.size());
  std::memcpy(bytes.data() + offset, what.data(), what.size());
}

int Write(sqlite3_file* base, const void* from, int size, sqlite3_int64 offset) {
  Handle& handle = HandleOf(base);
  if (handle.is_dead()) return SQLITE_IOERR_WRITE;
  CrashVfs::File& file = *handle.file;
  const auto start = static_cast<std::size_t>(offset);
  const std::string_view what(static_cast<const char*>(from), static_cast<std::size_t>(size));
  const int code =
      CodeOf(current_vfs->Allow(start + what.size() > file.bytes.size()), SQLITE_IOERR_WRITE);
  if (code != SQLITE_OK) return code;
  Put(file.bytes, start, what);
  file.unsynced.push_back({.offset = start, .bytes = std::string(what)});
  return SQLITE_OK;
}

int Truncate(sqlite3_file* base, sqlite3_int64 size) {
  Handle& handle = HandleOf(base);
  if (handle.is_dead()) return SQLITE_IOERR_TRUNCATE;
  const int code = CodeOf(current_vfs->Allow(false), SQLITE_IOERR_TRUNCATE);
  if (code != SQLITE_OK) return code;
  handle.file->bytes.resize(static_cast<std::size_t>(size));
  handle.file->unsynced.push_back({.offset = static_cast<std::size_t>(size), .is_cut = true});
  return SQLITE_OK;
}

int Sync(sqlite3_file* base, int) {
  Handle& handle = HandleOf(base);
  if (handle.is_dead()) return SQLITE_IOERR_FSYNC;
  const int code = CodeOf(current_vfs->Allow(false), SQLITE_IOERR_FSYNC);
  if (code != SQLITE_OK || current_vfs->ignores_sync()) return code;
  handle.file->durable = handle.file->bytes;
  handle.file->unsynced.clear();
  handle.file->was_synced = true;
  return SQLITE_OK;
}

int FileSize(sqlite3_file* base, sqlite3_int64* size) {
  Handle& handle = HandleOf(base);
  if (handle.is_dead()) return SQLITE_IOERR_FSTAT;
  *size = static_cast<sqlite3_int64>(handle.file->bytes.size());
  return SQLITE_OK;
}

int Lock(sqlite3_file* base, int level) {
  Handle& handle = HandleOf(base);
  if (handle.is_dead()) return SQLITE_IOERR_LOCK;
  auto& locks = handle.file->locks;
  for (const auto& [other, held] : locks) {
    if (other == &handle) continue;
    const bool conflicts = level == SQLITE_LOCK_EXCLUSIVE  ? held >= SQLITE_LOCK_SHARED
                           : level == SQLITE_LOCK_RESERVED ? held >= SQLITE_LOCK_RESERVED
                                                           : held >= SQLITE_LOCK_PENDING;
    if (conflicts) return SQLITE_BUSY;
  }
  int& own = locks[&handle];
  own = std::max(own, level);
  return SQLITE_OK;
}

int Unlock(sqlite3_file* base, int level) {
  Handle& handle = HandleOf(base);
  if (level == SQLITE_LOCK_NONE) {
    handle.file->locks.erase(&handle);
  } else {
    handle.file->locks[&handle] = level;
  }
  return SQLITE_OK;
}

int CheckReservedLock(sqlite3_file* base, int* result) {
  *result = std::ranges::any_of(HandleOf(base).file->locks, [](const auto& lock) {
    return lock.second >= SQLITE_LOCK_RESERVED;
  });
  return SQLITE_OK;
}

int FileControl(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return kSector; }
// As the real one says of real disks: what is beside a write stays as it was.
int DeviceCharacteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int ShmMap(sqlite3_file* base, int region, int size, int extend, void volatile** to) {
  Handle& handle = HandleOf(base);
  *to = nullptr;
  if (handle.is_dead()) return SQLITE_IOERR_SHMMAP;
  auto& shared = handle.file->shared;
  if (!std::exchange(handle.uses_shared, true)) ++handle.file->shared_users;
  if (static_cast<std::size_t>(region) >= shared.size()) {
    if (extend == 0) return SQLITE_OK;
    while (shared.size() <= static_cast<std::size_t>(region)) {
      shared.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size)));
    }
  }
  *to = shared[static_cast<std::size_t>(region)].get();
  return SQLITE_OK;
}

int ShmLock(sqlite3_file* base, int first, int count, int flags) {
  Handle& handle = HandleOf(base);
  auto& locks = handle.file->shared_locks;
  const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    for (int i = first; i < first + count; ++i) locks[static_cast<std::size_t>(i)].erase(&handle);
    return SQLITE_OK;
  }
  if (handle.is_dead()) return SQLITE_IOERR_SHMLOCK;
  for (int i = first; i < first + count; ++i) {
    for (const auto& [other, is_exclusive] : locks[static_cast<std::size_t>(i)]) {
      if (other != &handle && (exclusive || is_exclusive)) return SQLITE_BUSY;
    }
  }
  for (int i = first; i < first + count; ++i) {
    locks[static_cast<std::size_t>(i)][&handle] = exclusive;
  }
  return SQLITE_OK;
}

void ShmBarrier(sqlite3_file*) {}

int ShmUnmap(sqlite3_file* base, int) {
  Handle& handle = HandleOf(base);
  for (auto& locks : handle.file->shared_locks) locks.erase(&handle);
  if (!std::exchange(handle.uses_shared, false)) return SQLITE_OK;
  if (handle.generation != current_vfs->generation()) return SQLITE_OK;  // it went with its process
  if (--handle.file->shared_users == 0) handle.file->shared.clear();
  return SQLITE_OK;
}

constexpr sqlite3_io_methods kMethods = {.iVersion = 2,
                                         .xClose = Close,
                                         .xRead = Read,
                                         .xWrite = Write,
                                         .xTruncate = Truncate,
                                         .xSync = Sync,
                                         .xFileSize = FileSize,
                                         .xLock = Lock,
                                         .xUnlock = Unlock,
                                         .xCheckReservedLock = CheckReservedLock,
                                         .xFileControl = FileControl,
                                         .xSectorSize = SectorSize,
                                         .xDeviceCharacteristics = DeviceCharacteristics,
                                         .xShmMap = ShmMap,
                                         .xShmLock = ShmLock,
                                         .xShmBarrier = ShmBarrier,
                                         .xShmUnmap = ShmUnmap};

int Open(sqlite3_vfs*, const char* name, sqlite3_file* base, int flags, int* out_flags) {
  base->pMethods = nullptr;
  if (current_vfs == nullptr || current_vfs->is_dead()) return SQLITE_CANTOPEN;
  auto file = current_vfs->OpenFile(name, (flags & SQLITE_OPEN_CREATE) != 0);
  if (!file) return SQLITE_CANTOPEN;
  new (base) Handle{.base = {.pMethods = &kMethods},
                    .file = std::move(file),
                    .generation = current_vfs->generation()};
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs*, const char* name, int) {
  if (current_vfs == nullptr || current_vfs->is_dead()) return SQLITE_IOERR_DELETE;
  if (!current_vfs->Exists(name)) return SQLITE_IOERR_DELETE_NOENT;
  const int code = CodeOf(current_vfs->Allow(false), SQLITE_IOERR_DELETE);
  if (code == SQLITE_OK) current_vfs->Delete(name);
  return code;
}

int Access(sqlite3_vfs*, const char* name, int, int* result) {
  *result = current_vfs != nullptr && current_vfs->Exists(name) ? 1 : 0;
  return SQLITE_OK;
}

int FullPathname(sqlite3_vfs*, const char* name, int size, char* to) {
  sqlite3_snprintf(size, to, "%s", name);
  return SQLITE_OK;
}

int Randomness(sqlite3_vfs*, int size, char* to) {
  for (int i = 0; i < size; ++i) to[i] = static_cast<char>(current_vfs ? current_vfs->Random() : 0);
  return size;
}
int Sleep(sqlite3_vfs*, int microseconds) { return microseconds; }
int CurrentTimeInt64(sqlite3_vfs*, sqlite3_int64* now) {
  *now = 212'000'000'000'000;  // some day; nothing stored depends on it
  return SQLITE_OK;
}
int CurrentTime(sqlite3_vfs*, double* now) {
  *now = 2'450'000;
  return SQLITE_OK;
}
// What the last failure was: the one thing that is asked for is whether there was room.
int GetLastError(sqlite3_vfs*, int, char*) { return 0; }

sqlite3_vfs* TheVfs() {
  static sqlite3_vfs vfs = {.iVersion = 2,
                            .szOsFile = sizeof(Handle),
                            .mxPathname = 512,
                            .zName = "crash",
                            .xOpen = Open,
                            .xDelete = Delete,
                            .xAccess = Access,
                            .xFullPathname = FullPathname,
                            .xRandomness = Randomness,
                            .xSleep = Sleep,
                            .xCurrentTime = CurrentTime,
                            .xGetLastError = GetLastError,
                            .xCurrentTimeInt64 = CurrentTimeInt64};
  return &vfs;
}

// What is left of the file after the power failed.
void LoseUnsynced(CrashVfs::File& file, Dice& dice) {
  std::string left = std::move(file.durable);
  for (CrashVfs::File::Unsynced& change : file.unsynced) {
    if (!dice.Chance(0.5)) continue;
    if (change.is_cut) {
      left.resize(change.offset);
      continue;
    }
    std::string_view bytes = change.bytes;
    if (dice.Chance(0.3)) {  // torn between two sectors
      const std::size_t sectors = bytes.size() / kSector;
      bytes = bytes.substr(0, kSector * dice.Index(sectors + 1));
    }
    if (!bytes.empty()) Put(left, change.offset, bytes);
  }
  file.durable = left;
  file.bytes = std::move(left);
  file.unsynced.clear();
}

}  // namespace

CrashVfs* CrashVfs::current() { return current_vfs; }

CrashVfs::CrashVfs(std::uint64_t seed) : dice_(seed, 300) {
  LF_CHECK(current_vfs == nullptr, "one file system at a time");
  current_vfs = this;
  sqlite3_vfs_register(TheVfs(), 1);
  sqlite3_randomness(0, nullptr);  // begins anew, with what Randomness() gives
}

CrashVfs::~CrashVfs() {
  sqlite3_vfs_unregister(TheVfs());
  current_vfs = nullptr;
}

CrashVfs::Change CrashVfs::Allow(bool grows) {
  ++changes_;
  if (dies_in_ != kNever && dies_in_-- == 0) {
    dies_in_ = kNever;
    is_dead_ = true;
  }
  if (is_dead_) return Change::kFails;
  if (fails_in_ != kNever && fails_in_-- == 0) {
    fails_in_ = kNever;
    return Change::kFails;
  }
  return grows && is_full_ ? Change::kNoRoom : Change::kAllowed;
}

std::shared_ptr<CrashVfs::File> CrashVfs::OpenFile(const char* name, bool create) {
  if (name == nullptr) return std::make_shared<File>();  // a temporary one
  const auto known = files_.find(name);
  if (known != files_.end()) return known->second;
  if (!create || Allow(false) != Change::kAllowed) return nullptr;
  return files_[name] = std::make_shared<File>();
}

void CrashVfs::KillProcess() {
  ++generation_;
  dies_in_ = kNever;
  fails_in_ = kNever;
  for (auto& [name, file] : files_) {
    file->locks.clear();
    // Rebuilt by whoever comes first; the dead process's connections are yet to be cleared away.
    std::ranges::move(file->shared, std::back_inserter(file->shared_of_the_dead));
    file->shared.clear();
    file->shared_users = 0;
    for (auto& locks : file->shared_locks) locks.clear();
  }
}

void CrashVfs::FailPower() {
  KillProcess();
  ++power_failures_;
  for (auto file = files_.begin(); file != files_.end();) {
    LoseUnsynced(*file->second, dice_);
    const bool was_made_in_vain = !file->second->was_synced && dice_.Chance(0.5);
    file = was_made_in_vain ? files_.erase(file) : std::next(file);
  }
}

}  // namespace loopfleet::simulation
