#include "tests/support/crash_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/base/random.h"

namespace loopfleet {
namespace {

constexpr std::size_t kSector = 512;
constexpr int kShmLocks = SQLITE_SHM_NLOCK;

// A change that is not durable yet.
struct Change {
  enum class Kind { kWrite, kTruncate } kind;
  std::size_t offset = 0;  // or the new size
  std::string bytes;
};

void Apply(std::string& content, const Change& change) {
  if (change.kind == Change::Kind::kTruncate) {
    content.resize(change.offset);
    return;
  }
  if (content.size() < change.offset + change.bytes.size()) {
    content.resize(change.offset + change.bytes.size());
  }
  content.replace(change.offset, change.bytes.size(), change.bytes);
}

struct Disk {
  std::optional<std::string> durable;  // none: the file's making is not durable
  std::string content;                 // as programs see it
  std::vector<Change> changes;         // durable + changes = content
  std::optional<Change> under_way;     // when the machine died; may have reached the disk
  bool exists = true;                  // deleted, but its deletion is not durable: false

  // Locks of the main file, and shared memory; both are gone with the last connection.
  int shared = 0;
  const void* reserved = nullptr;
  const void* pending = nullptr;
  const void* exclusive = nullptr;
  std::vector<std::unique_ptr<char[]>> shm;
  int shm_shared[kShmLocks] = {};
  const void* shm_exclusive[kShmLocks] = {};
  int shm_users = 0;
};

}  // namespace

struct CrashVfs::State {
  sqlite3_vfs vfs{};
  sqlite3_vfs* real = nullptr;
  std::map<std::string, Disk> files;
  SplitMix64 random;  // what SQLite gets

  // Told and asked from beside the thread that works.
  std::atomic<std::uint64_t> operations = 0;
  std::atomic<std::uint64_t> fail_at = 0;  // 0: never
  DiskFault fault = DiskFault::kIoError;
  Lasting lasting = Lasting::kOnce;
  bool failed = false;
  bool is_dead = false;
  bool is_full = false;
  bool ignores_syncs = false;
  int last_errno = 0;  // of the last failure

  explicit State(std::uint64_t seed) : random(seed) {}

  enum class Growth { kNone, kSome };
  enum class Verdict { kGo, kFull, kIoError, kDies, kDead };
  // Decides about one more operation that changes the disk.
  Verdict Next(Growth growth = Growth::kNone) {
    if (is_dead) return Verdict::kDead;
    ++operations;
    const bool hit =
        fail_at != 0 && (lasting == Lasting::kOnce ? operations == fail_at : operations >= fail_at);
    if (hit) {
      failed = true;
      last_errno = fault == DiskFault::kFull ? ENOSPC : EIO;
      if (fault == DiskFault::kDeath) {
        is_dead = true;
        return Verdict::kDies;
      }
      return fault == DiskFault::kFull ? Verdict::kFull : Verdict::kIoError;
    }
    if (!is_full || growth == Growth::kNone) return Verdict::kGo;
    last_errno = ENOSPC;
    return Verdict::kFull;
  }
  void ExpectAllClosed() const {
    for (const auto& [name, disk] : files) {
      if (disk.shm_users != 0 || disk.shared != 0) throw std::logic_error("a connection is open");
    }
  }
  void Revive() {
    is_dead = false;
    failed = false;
    fail_at = 0;
    operations = 0;
  }
};

namespace {

using State = CrashVfs::State;
using Verdict = State::Verdict;

struct File {
  sqlite3_file base;
  State* state;
  Disk* disk;
  int lock;  // SQLITE_LOCK_*
  bool has_shm;
  std::uint32_t shm_shared;  // bits: locks that this connection shares
  bool temporary;
  bool syncs_directory;  // with its next sync
};

File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }

int Unlock(sqlite3_file* file, int level) {
  File* self = Of(file);
  Disk& disk = *self->disk;
  if (self->lock > level) {
    if (disk.exclusive == self) disk.exclusive = nullptr;
    if (disk.pending == self) disk.pending = nullptr;
    if (disk.reserved == self) disk.reserved = nullptr;
    if (level == SQLITE_LOCK_NONE && self->lock >= SQLITE_LOCK_SHARED) --disk.shared;
    self->lock = level;
  }
  return SQLITE_OK;
}

int Lock(sqlite3_file* file, int level) {
  File* self = Of(file);
  Disk& disk = *self->disk;
  if (self->lock >= level) return SQLITE_OK;
  if (level == SQLITE_LOCK_SHARED) {
    if (disk.exclusive != nullptr || disk.pending != nullptr) return SQLITE_BUSY;
    ++disk.shared;
  } else {
    if (disk.reserved != nullptr && disk.reserved != self) return SQLITE_BUSY;
    disk.reserved = self;
    if (level == SQLITE_LOCK_EXCLUSIVE) {
      disk.pending = self;
      if (disk.shared > 1) return SQLITE_BUSY;
      disk.exclusive = self;
    }
  }
  self->lock = level;
  return SQLITE_OK;
}

int CheckReservedLock(sqlite3_file* file, int* held) {
  *held = Of(file)->disk->reserved != nullptr;
  return SQLITE_OK;
}

int ShmUnmap(sqlite3_file* file, int /*remove*/) {
  File* self = Of(file);
  if (!std::exchange(self->has_shm, false)) return SQLITE_OK;
  Disk& disk = *self->disk;
  for (int i = 0; i < kShmLocks; ++i) {
    if (self->shm_shared >> i & 1) --disk.shm_shared[i];
    if (disk.shm_exclusive[i] == self) disk.shm_exclusive[i] = nullptr;
  }
  self->shm_shared = 0;
  if (--disk.shm_users == 0) disk.shm.clear();
  return SQLITE_OK;
}

int Close(sqlite3_file* file) {
  File* self = Of(file);
  ShmUnmap(file, 0);
  Unlock(file, SQLITE_LOCK_NONE);
  if (self->temporary) delete self->disk;
  return SQLITE_OK;
}

int Read(sqlite3_file* file, void* to, int amount, sqlite3_int64 offset) {
  const File* self = Of(file);
  if (self->state->is_dead) return SQLITE_IOERR_READ;
  const std::string& content = self->disk->content;
  const auto from = static_cast<std::size_t>(offset);
  const auto wanted = static_cast<std::size_t>(amount);
  const std::size_t there = from < content.size() ? std::min(wanted, content.size() - from) : 0;
  std::memcpy(to, content.data() + std::min(from, content.size()), there);
  if (there == wanted) return SQLITE_OK;
  std::memset(static_cast<char*>(to) + there, 0, wanted - there);
  return SQLITE_IOERR_SHORT_READ;
}

int ChangeDisk(File* self, Change change, int io_error) {
  const bool grows = change.kind == Change::Kind::kWrite &&
                     change.offset + change.bytes.size() > self->disk->content.size();
  const Verdict verdict =
      self->temporary ? Verdict::kGo
                      : self->state->Next(grows ? State::Growth::kSome : State::Growth::kNone);
  if (verdict == Verdict::kFull) return SQLITE_FULL;
  if (verdict == Verdict::kDies) self->disk->under_way = std::move(change);
  if (verdict != Verdict::kGo) return io_error;
  Apply(self->disk->content, change);
  self->disk->changes.push_back(std::move(change));
  return SQLITE_OK;
}

int Write(sqlite3_file* file, const void* from, int amount, sqlite3_int64 offset) {
  return ChangeDisk(
      Of(file),
      {.kind = Change::Kind::kWrite,
       .offset = static_cast<std::size_t>(offset),
       .bytes = std::string(static_cast<const char*>(from), static_cast<std::size_t>(amount))},
      SQLITE_IOERR_WRITE);
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return ChangeDisk(Of(file),
                    {.kind = Change::Kind::kTruncate, .offset = static_cast<std::size_t>(size)},
                    SQLITE_IOERR_TRUNCATE);
}

int Sync(sqlite3_file* file, int /*flags*/) {
  File* self = Of(file);
  if (self->temporary) return SQLITE_OK;
  switch (self->state->Next()) {
    case Verdict::kGo: break;
    case Verdict::kFull: return SQLITE_FULL;
    default: return SQLITE_IOERR_FSYNC;
  }
  if (self->state->ignores_syncs) return SQLITE_OK;
  self->disk->durable = self->disk->content;
  self->disk->changes.clear();
  if (!std::exchange(self->syncs_directory, false)) return SQLITE_OK;
  for (auto& [name, disk] : self->state->files) {
    if (!disk.exists) disk.durable.reset();
  }
  return SQLITE_OK;
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  if (Of(file)->state->is_dead) return SQLITE_IOERR_FSTAT;
  *size = static_cast<sqlite3_int64>(Of(file)->disk->content.size());
  return SQLITE_OK;
}

int FileControl(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return kSector; }
// As SQLite's own file system says of real disks: a write changes no byte beside it.
int DeviceCharacteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int ShmMap(sqlite3_file* file, int region, int size, int extend, void volatile** to) {
  File* self = Of(file);
  Disk& disk = *self->disk;
  *to = nullptr;
  if (self->state->is_dead) return SQLITE_IOERR_SHMMAP;
  if (!std::exchange(self->has_shm, true)) ++disk.shm_users;
  const auto wanted = static_cast<std::size_t>(region);
  if (wanted >= disk.shm.size() && extend == 0) return SQLITE_OK;
  while (wanted >= disk.shm.size()) {
    disk.shm.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size)));
  }
  *to = disk.shm[wanted].get();
  return SQLITE_OK;
}

int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  File* self = Of(file);
  Disk& disk = *self->disk;
  for (int i = offset; i < offset + count; ++i) {
    const std::uint32_t bit = 1U << i;
    if (flags & SQLITE_SHM_UNLOCK) {
      if (self->shm_shared & bit) --disk.shm_shared[i];
      self->shm_shared &= ~bit;
      if (disk.shm_exclusive[i] == self) disk.shm_exclusive[i] = nullptr;
    } else if (flags & SQLITE_SHM_SHARED) {
      if (disk.shm_exclusive[i] != nullptr) return SQLITE_BUSY;
      if (!(self->shm_shared & bit)) ++disk.shm_shared[i];
      self->shm_shared |= bit;
    } else {
      const int others = disk.shm_shared[i] - ((self->shm_shared & bit) ? 1 : 0);
      if (others > 0 || (disk.shm_exclusive[i] != nullptr && disk.shm_exclusive[i] != self)) {
        for (int undo = offset; undo < i; ++undo) disk.shm_exclusive[undo] = nullptr;
        return SQLITE_BUSY;
      }
      disk.shm_exclusive[i] = self;
    }
  }
  return SQLITE_OK;
}

void ShmBarrier(sqlite3_file*) {}

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
                                         .xShmUnmap = ShmUnmap,
                                         .xFetch = nullptr,
                                         .xUnfetch = nullptr};

State* StateOf(sqlite3_vfs* vfs) { return static_cast<State*>(vfs->pAppData); }

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  State* state = StateOf(vfs);
  File* self = new (file) File{};
  if (state->is_dead) return SQLITE_CANTOPEN;
  self->state = state;
  if (name == nullptr) {
    self->temporary = true;
    self->disk = new Disk;
  } else {
    const auto known = state->files.find(name);
    if (known == state->files.end() || !known->second.exists) {
      if (!(flags & SQLITE_OPEN_CREATE)) return SQLITE_CANTOPEN;
      Disk& made = state->files[name];
      made.exists = true;
      made.content.clear();
      made.changes.push_back({.kind = Change::Kind::kTruncate, .offset = 0});
    }
    self->disk = &state->files[name];
    self->syncs_directory = (flags & SQLITE_OPEN_CREATE) != 0 &&
                            (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
  }
  self->base.pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  State* state = StateOf(vfs);
  const auto known = state->files.find(name);
  if (known == state->files.end() || !known->second.exists) return SQLITE_IOERR_DELETE_NOENT;
  if (state->Next() != Verdict::kGo) return SQLITE_IOERR_DELETE;
  Disk& disk = known->second;
  disk.exists = false;
  disk.content.clear();
  disk.changes.clear();
  if (sync_directory != 0) disk.durable.reset();
  return SQLITE_OK;
}

int Access(sqlite3_vfs* vfs, const char* name, int /*flags*/, int* result) {
  State* state = StateOf(vfs);
  if (state->is_dead) return SQLITE_IOERR_ACCESS;
  const auto known = state->files.find(name);
  *result = known != state->files.end() && known->second.exists;
  return SQLITE_OK;
}

int FullPathname(sqlite3_vfs*, const char* name, int size, char* to) {
  sqlite3_snprintf(size, to, "%s", name);
  return SQLITE_OK;
}

int Randomness(sqlite3_vfs* vfs, int size, char* to) {
  for (int i = 0; i < size; ++i) to[i] = static_cast<char>(StateOf(vfs)->random.Next());
  return size;
}

// No stored value depends on the time.
int CurrentTime(sqlite3_vfs*, double* julian_day) {
  *julian_day = 2'460'000;
  return SQLITE_OK;
}

// Some of the sectors that a write covers.
Change Torn(const Change& change, SplitMix64& random) {
  const std::size_t first = change.offset / kSector;
  const std::size_t last = (change.offset + change.bytes.size() - 1) / kSector;
  const std::size_t from = first + random.Below(last - first + 1);
  const std::size_t to = from + random.Below(last - from + 1);
  const std::size_t begin = std::max(from * kSector, change.offset);
  const std::size_t end = std::min((to + 1) * kSector, change.offset + change.bytes.size());
  return {.kind = Change::Kind::kWrite,
          .offset = begin,
          .bytes = change.bytes.substr(begin - change.offset, end - begin)};
}

}  // namespace

CrashVfs::CrashVfs(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {
  State& state = *state_;
  state.real = sqlite3_vfs_find(nullptr);
  state.vfs = {
      .iVersion = 1,
      .szOsFile = sizeof(File),
      .mxPathname = 1024,
      .pNext = nullptr,
      .zName = "loopfleet_crash",
      .pAppData = &state,
      .xOpen = Open,
      .xDelete = Delete,
      .xAccess = Access,
      .xFullPathname = FullPathname,
      .xDlOpen = nullptr,
      .xDlError = nullptr,
      .xDlSym = nullptr,
      .xDlClose = nullptr,
      .xRandomness = Randomness,
      .xSleep = [](sqlite3_vfs*, int micros) { return micros; },  // no time passes
      .xCurrentTime = CurrentTime,
      .xGetLastError = [](sqlite3_vfs* vfs, int, char*) { return StateOf(vfs)->last_errno; },
      .xCurrentTimeInt64 = nullptr,
      .xSetSystemCall = nullptr,
      .xGetSystemCall = nullptr,
      .xNextSystemCall = nullptr};
  sqlite3_vfs_register(&state.vfs, 1);
  sqlite3_randomness(0, nullptr);  // starts again, from Randomness()
}

CrashVfs::~CrashVfs() {
  sqlite3_vfs_unregister(&state_->vfs);
  sqlite3_vfs_register(state_->real, 1);
}

std::uint64_t CrashVfs::operations() const { return state_->operations; }
bool CrashVfs::failed() const { return state_->failed; }

void CrashVfs::FailAt(std::uint64_t operation, DiskFault fault, Lasting lasting) {
  state_->fail_at = operation;
  state_->fault = fault;
  state_->lasting = lasting;
  state_->failed = false;
}

void CrashVfs::Mend() { state_->fail_at = 0; }
void CrashVfs::SetFull(bool is_full) { state_->is_full = is_full; }
void CrashVfs::IgnoreSyncs() { state_->ignores_syncs = true; }
void CrashVfs::Die() { state_->is_dead = true; }

void CrashVfs::Restart() {
  state_->ExpectAllClosed();
  for (auto& [name, disk] : state_->files) disk.under_way.reset();
  state_->Revive();
}

void CrashVfs::Reboot(std::uint64_t seed) {
  State& state = *state_;
  state.ExpectAllClosed();
  SplitMix64 random(seed);
  for (auto next = state.files.begin(); next != state.files.end();) {
    Disk& disk = next->second;
    const bool comes_back = !disk.exists && disk.durable && random.Below(2) == 0;
    const bool never_made = disk.exists && !disk.durable && random.Below(2) == 0;
    if ((!disk.exists && !comes_back) || never_made) {
      next = state.files.erase(next);
      continue;
    }
    std::string content = disk.durable.value_or("");
    if (disk.under_way) disk.changes.push_back(*std::move(disk.under_way));
    // What reached the disk, in the order in which it did.
    std::vector<Change> changes;
    const std::uint64_t mood = random.Below(4);  // 0: nothing, 1: everything, else: some
    for (const Change& change : disk.changes) {
      if (mood == 0 || (mood != 1 && random.Below(2) == 0)) continue;
      const bool tear = mood != 1 && change.kind == Change::Kind::kWrite && !change.bytes.empty() &&
                        random.Below(3) == 0;
      changes.push_back(tear ? Torn(change, random) : change);
    }
    if (mood == 3) {
      for (std::size_t i = changes.size(); i > 1; --i) {
        std::swap(changes[i - 1], changes[random.Below(i)]);
      }
    }
    for (const Change& change : changes) Apply(content, change);
    disk = Disk{};
    disk.durable = content;
    disk.content = std::move(content);
    ++next;
  }
  state.Revive();
}

void CrashVfs::Put(const std::filesystem::path& path, const std::string& bytes) {
  Disk& disk = state_->files[path.native()];
  disk = Disk{};
  disk.content = bytes;
  disk.durable = bytes;
}

std::string CrashVfs::Get(const std::filesystem::path& path) const {
  const auto known = state_->files.find(path.native());
  return known == state_->files.end() ? std::string() : known->second.content;
}

}  // namespace loopfleet
