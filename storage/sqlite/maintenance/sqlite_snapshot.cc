#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "common/base/host_name.h"
#include "common/base/unique_fd.h"
#include "storage/snapshot.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {
namespace {

std::unexpected<Error> SystemError(std::string_view what, const std::filesystem::path& path) {
  return Fail(errno == ENOSPC || errno == EDQUOT ? ErrorKind::kFull
              : errno == EEXIST                  ? ErrorKind::kExists
                                                 : ErrorKind::kSystem,
              fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno)));
}

std::filesystem::path DirectoryOf(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

Status SyncDirectory(const std::filesystem::path& file) {
  const auto directory = DirectoryOf(file);
  const UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::fsync(opened.get()) != 0) return SystemError("sync", directory);
  return {};
}

Status CopyInto(Connection& from, const std::filesystem::path& to) {
  {
    const UniqueFd made(::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!made) return SystemError("make", to);
  }
  LF_TRY(const auto copy, Connection::Open(to, Access::kReadWriteCreate, kBusyWait));
  LF_TRY_VOID(copy->CopyFrom(from));
  LF_TRY(const std::int64_t can_be_marked,
         copy->Number("SELECT count(*) FROM pragma_table_info('writer') "
                      "WHERE name = 'is_snapshot'"));
  if (can_be_marked != 0) {  // else it is of an earlier version
    LF_TRY_VOID(copy->Run("UPDATE writer SET is_snapshot = 1"));
  }
  // Leaves a single file, without a log beside it.
  return copy->Run("PRAGMA journal_mode = DELETE");
}

// A snapshot is written in a folder of its own, which is locked until it is complete. The locks of
// the file are SQLite's. On a network file system another host does not see this lock, so the
// folder's name ends with the host's.
constexpr std::string_view kUnfinished = ".unfinished.";
std::string OfThisHost() { return "@" + HostName(); }

// Removes what killed snapshots left in the directory of `to`.
void RemoveAbandoned(const std::filesystem::path& to) {
  const std::string of_this_host = OfThisHost();
  std::error_code error;
  for (std::filesystem::directory_iterator entry(DirectoryOf(to), error), end;
       !error && entry != end; entry.increment(error)) {
    const auto& folder = entry->path();
    const std::string name = folder.filename().string();
    if (name.find(kUnfinished) == std::string::npos || !name.ends_with(of_this_host)) continue;
    const UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!opened || ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0) continue;
    // An empty one may have been made just now, and is about to be locked.
    std::error_code ignored;
    struct stat status{};
    const bool is_new =
        ::fstat(opened.get(), &status) != 0 || std::time(nullptr) - status.st_mtime < 60;
    if (is_new && std::filesystem::is_empty(folder, ignored)) continue;
    std::filesystem::remove_all(folder, ignored);
  }
}

}  // namespace

Status TakeSnapshot(const std::filesystem::path& from, const std::filesystem::path& to) {
  LF_TRY(const auto source, Connection::Open(from, Access::kReadOnly, kBusyWait));
  LF_TRY_VOID(CheckOrigin(*source));
  RemoveAbandoned(to);
  std::error_code error;
  if (std::filesystem::exists(to, error)) {
    return Fail(ErrorKind::kExists, fmt::format("{} already exists: name a new file", to.string()));
  }
  // A name of its own for each process and call.
  static std::atomic<std::uint64_t> last_number = 0;
  auto folder = to;
  folder += fmt::format("{}{}.{}{}", kUnfinished, ::getpid(), ++last_number, OfThisHost());
  if (::mkdir(folder.c_str(), 0700) != 0) return SystemError("make", folder);
  const UniqueFd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) {
    auto failed = SystemError("open", folder);
    ::rmdir(folder.c_str());
    return failed;
  }
  // Where folders cannot be locked, RemoveAbandoned cannot lock them either, and removes none.
  while (::flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  const auto unfinished = folder / "copy.db";
  Status copied = CopyInto(*source, unfinished);
  // link(), not rename(): it never replaces a file that appeared meanwhile.
  if (copied && ::link(unfinished.c_str(), to.c_str()) != 0) copied = SystemError("make", to);
  std::filesystem::remove_all(folder, error);
  LF_TRY_VOID(std::move(copied));
  return SyncDirectory(to);
}

}  // namespace loopfleet::storage
