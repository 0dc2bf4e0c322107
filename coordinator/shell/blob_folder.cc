#include "coordinator/shell/blob_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/sha256.h"
#include "common/base/unique_fd.h"
#include "common/wire/bounds.h"

namespace loopfleet::coordinator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPart = ".part";
constexpr std::size_t kNameLength = 64;

std::uint64_t Blocks(std::uint64_t size) {
  constexpr std::uint64_t kBlock = 4'096;
  return (size + kBlock - 1) / kBlock * kBlock;
}

bool IsOurs(std::string_view name) {
  if (name.ends_with(kPart)) name.remove_suffix(kPart.size());
  return name.size() == kNameLength &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsWhole(std::string_view name) { return !name.ends_with(kPart); }

Error SystemError(const fs::path& path, std::string_view what) {
  const int code = errno;
  return {.kind = code == ENOSPC || code == EDQUOT ? ErrorKind::kFull : ErrorKind::kSystem,
          .message = fmt::format("cannot {} '{}': {}", what, path.native(),
                                 std::generic_category().message(code))};
}

Status SyncFolder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return std::unexpected(SystemError(folder, "sync"));
  return {};
}

Result<std::string> ReadPart(const fs::path& path, std::uint64_t offset, std::uint64_t size) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return std::unexpected(SystemError(path, "open"));
  std::string bytes(size, '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more =
        ::pread(fd.get(), bytes.data() + got, bytes.size() - got, static_cast<off_t>(offset + got));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return std::unexpected(SystemError(path, "read"));
    if (more == 0) return Fail(ErrorKind::kCorrupt, fmt::format("'{}' is cut", path.native()));
    got += static_cast<std::size_t>(more);
  }
  return bytes;
}

Failure StorageFailure(const Error& error) {
  return {.code = FailureCode::kStorageFull, .message = error.message};
}

}  // namespace

Result<BlobFolder> BlobFolder::Open(fs::path folder, std::uint64_t max_bytes) {
  std::error_code error;
  const bool is_there = fs::exists(folder, error);
  BlobFolder blobs(std::move(folder), max_bytes);
  if (is_there) LF_TRY_VOID(blobs.Scan());
  blobs.MakeRoom(0, "");
  return blobs;
}

Status BlobFolder::Scan() {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().native();
    std::error_code gone;
    if (!IsOurs(name) || !entry->is_regular_file(gone)) continue;
    files_[name].size = entry->file_size(gone);
    bytes_ += Blocks(files_[name].size);
    programs_ += IsWhole(name) ? 1 : 0;
    found.emplace_back(entry->last_write_time(gone), name);
  }
  if (error) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("the folder of programs '{}': {}", folder_.native(), error.message()));
  }
  std::ranges::sort(found);
  for (const auto& [time, name] : found) files_[name].last_use = ++uses_;
  return {};
}

std::expected<std::uint64_t, Failure> BlobFolder::Put(const wire::BlobPiece& piece) {
  if (const auto whole = files_.find(piece.sha256); whole != files_.end()) {
    const Result<bool> is_sound = Verify(whole);
    if (!is_sound) return std::unexpected(StorageFailure(is_sound.error()));
    if (!*is_sound) return 0;
    if (whole->second.size != piece.total) {
      return std::unexpected(
          Failure{.code = FailureCode::kInvalidBenchmark,
                  .message = fmt::format("the program {} has {} bytes, not {}", piece.sha256,
                                         whole->second.size, piece.total)});
    }
    Touch(whole);
    return piece.total;
  }
  const std::string name = piece.sha256 + std::string(kPart);
  const auto part = files_.find(name);
  std::uint64_t held = part == files_.end() ? 0 : part->second.size;
  if (held > piece.total) {  // of a sender that lied
    Remove(part);
    held = 0;
  }
  if (held < piece.total) {
    if (piece.offset != held || piece.bytes.empty()) return held;
    if (!MakeRoom(Blocks(held + piece.bytes.size()) - Blocks(held), name)) {
      return std::unexpected(Failure{.code = FailureCode::kStorageFull,
                                     .message = "the folder of programs is too small"});
    }
    if (const Status written = Append(name, piece.bytes); !written) {
      return std::unexpected(StorageFailure(written.error()));
    }
    held += piece.bytes.size();
  }
  return held == piece.total ? Complete(piece.sha256) : held;
}

Status BlobFolder::MakeFolder() {
  std::error_code error;
  const bool is_new = fs::create_directories(folder_, error);
  if (!error && is_new) fs::permissions(folder_, fs::perms::owner_all, error);
  if (!error) return {};
  return Fail(ErrorKind::kSystem,
              fmt::format("cannot make '{}': {}", folder_.native(), error.message()));
}

Status BlobFolder::Append(const std::string& name, std::string_view bytes) {
  if (files_.empty()) LF_TRY_VOID(MakeFolder());
  const fs::path path = folder_ / name;
  const UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return std::unexpected(SystemError(path, "open"));
  File& file = files_[name];
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      Error error = SystemError(path, "write");
      struct stat facts{};
      bytes_ -= Blocks(file.size);
      file.size = ::fstat(fd.get(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
      bytes_ += Blocks(file.size);
      return std::unexpected(std::move(error));
    }
    bytes_ -= Blocks(file.size);
    file.size += static_cast<std::uint64_t>(written);
    bytes_ += Blocks(file.size);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  file.last_use = ++uses_;
  return {};
}

std::expected<std::uint64_t, Failure> BlobFolder::Complete(const std::string& name) {
  const auto part = files_.find(name + std::string(kPart));
  const fs::path path = folder_ / part->first;
  const auto bytes = ReadPart(path, 0, part->second.size);
  if (!bytes) return std::unexpected(StorageFailure(bytes.error()));
  if (const std::string found = Sha256Of(*bytes); found != name) {
    Remove(part);
    return std::unexpected(
        Failure{.code = FailureCode::kInvalidBenchmark,
                .message = fmt::format("the {} bytes that came for the program {} have the SHA-256 "
                                       "{}; they are gone: send it again",
                                       bytes->size(), name, found)});
  }
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0 || ::rename(path.c_str(), (folder_ / name).c_str()) != 0) {
    return std::unexpected(StorageFailure(SystemError(path, "complete")));
  }
  File file = part->second;
  std::error_code unknown;
  file.verified = fs::last_write_time(folder_ / name, unknown);
  files_.erase(part);
  Touch(files_.emplace(name, file).first);
  ++programs_;
  if (const Status synced = SyncFolder(folder_); !synced) {
    return std::unexpected(StorageFailure(synced.error()));
  }
  return file.size;
}

Result<bool> BlobFolder::Verify(Files::iterator file) {
  const fs::path path = folder_ / file->first;
  std::error_code unknown;
  const auto written = fs::last_write_time(path, unknown);
  if (!unknown && file->second.verified == written) return true;
  const auto whole = ReadPart(path, 0, file->second.size);
  if (!whole && whole.error().kind != ErrorKind::kCorrupt) return std::unexpected(whole.error());
  if (whole && Sha256Of(*whole) == file->first) {
    file->second.verified = written;
    return true;
  }
  ++damaged_;
  Remove(file);
  return false;
}

Result<wire::BlobPiece> BlobFolder::Get(const wire::BlobWanted& wanted) {
  wire::BlobPiece piece{.sha256 = wanted.sha256, .total = 0, .offset = 0, .bytes = {}};
  const auto file = files_.find(wanted.sha256);
  if (file == files_.end()) return piece;
  const std::uint64_t size = file->second.size;
  LF_TRY(const bool is_sound, Verify(file));
  if (!is_sound) return piece;
  if (wanted.offset == 0) Touch(file);
  const std::uint64_t offset = std::min(wanted.offset, size);
  LF_TRY(piece.bytes, ReadPart(folder_ / file->first, offset,
                               std::min<std::uint64_t>(size - offset, wire::kMaxBlobPieceBytes)));
  piece.total = size;
  piece.offset = offset;
  return piece;
}

void BlobFolder::Touch(Files::iterator file) {
  file->second.last_use = ++uses_;
  const fs::path path = folder_ / file->first;
  std::error_code ignored;  // then it counts as older after a restart
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  if (file->second.verified) file->second.verified = fs::last_write_time(path, ignored);
}

void BlobFolder::Remove(Files::iterator file) {
  std::error_code ignored;  // it is found again at the next start
  fs::remove(folder_ / file->first, ignored);
  bytes_ -= Blocks(file->second.size);
  programs_ -= IsWhole(file->first) ? 1 : 0;
  files_.erase(file);
}

bool BlobFolder::MakeRoom(std::uint64_t bytes, const std::string& keep) {
  while (bytes_ + bytes > max_bytes_) {
    auto oldest = files_.end();
    for (auto file = files_.begin(); file != files_.end(); ++file) {
      if (file->first == keep) continue;
      if (oldest == files_.end() || file->second.last_use < oldest->second.last_use) oldest = file;
    }
    if (oldest == files_.end()) return false;
    ++removed_;
    Remove(oldest);
  }
  return true;
}

}  // namespace loopfleet::coordinator
