#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

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

Status SyncDirectory(const std::filesystem::path& file) {
  const auto directory = file.has_parent_path() ? file.parent_path() : ".";
  const UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::fsync(opened.get()) != 0) return SystemError("sync", directory);
  return {};
}

Status CopyInto(Connection& from, const std::filesystem::path& to) {
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

}  // namespace

Status TakeSnapshot(const std::filesystem::path& from, const std::filesystem::path& to) {
  LF_TRY(const auto source, Connection::Open(from, Access::kReadOnly, kBusyWait));
  LF_TRY_VOID(CheckOrigin(*source));
  std::error_code error;
  if (std::filesystem::exists(to, error)) {
    return Fail(ErrorKind::kExists, fmt::format("{} already exists: name a new file", to.string()));
  }
  // A name of its own for each process and call.
  static std::atomic<std::uint64_t> last_number = 0;
  auto unfinished = to;
  unfinished += fmt::format(".unfinished.{}.{}", ::getpid(), ++last_number);
  {
    const UniqueFd made(::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!made) return SystemError("make", unfinished);
  }
  Status copied = CopyInto(*source, unfinished);
  // link(), not rename(): it never replaces a file that appeared meanwhile.
  if (copied && ::link(unfinished.c_str(), to.c_str()) != 0) copied = SystemError("make", to);
  ::unlink(unfinished.c_str());
  LF_TRY_VOID(std::move(copied));
  return SyncDirectory(to);
}

}  // namespace loopfleet::storage
