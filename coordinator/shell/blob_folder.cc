#include "coordinator/shell/blob_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
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
constexpr std::string_view kOf = ".of-";
constexpr std::size_t kNameLength = 64;

std::uint64_t Blocks(std::uint64_t size) {
  constexpr std::uint64_t kBlock = 4'096;
  return (size + kBlock - 1) / kBlock * kBlock;
}

bool IsWhole(std::string_view name) { return IsSha256(name); }

std::string_view HashIn(std::string_view name) { return name.substr(0, kNameLength); }

std::string PartName(std::string_view hash, const Uuid& client) {
  return client.is_nil() ? fmt::format("{}{}", hash, kPart)
                         : fmt::format("{}.{}{}", hash, client.ToString(), kPart);
}

// The client that the name of a part tells; nullopt: it is none.
std::optional<Uuid> SenderIn(std::string_view name) {
  if (!IsSha256(HashIn(name)) || !name.ends_with(kPart)) return std::nullopt;
  name.remove_suffix(kPart.size());
  name.remove_prefix(kNameLength);
  if (name.empty()) return Uuid{};
  return name.starts_with('.') ? Uuid::Parse(name.substr(1)) : std::nullopt;
}

// The client that the name of a mark tells.
std::optional<Uuid> ClientIn(std::string_view name) {
  if (!IsSha256(HashIn(name))) return std::nullopt;
  name.remove_prefix(kNameLength);
  if (!name.starts_with(kOf)) return std::nullopt;
  return Uuid::Parse(name.substr(kOf.size()));
}

Error SystemError(const fs::path& path, std::string_view what) {
  const int code = errno;
  return {.kind = code == ENOSPC || code == EDQUOT ? ErrorKind::kFull
                  : code == ENOENT                 ? ErrorKind::kNotFound
                                                   : ErrorKind::kSystem,
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

Result<BlobFolder> BlobFolder::Open(fs::path folder, const Bounds& bounds) {
  std::error_code error;
  const bool is_there = fs::exists(folder, error);
  BlobFolder blobs(std::move(folder), bounds);
  if (is_there) LF_TRY_VOID(blobs.Scan());
  blobs.RemoveObserved(0, "");
  blobs.RemovePrograms(0, "");
  return blobs;
}

Status BlobFolder::Scan() {
  std::error_code error;
  std::vector<std::pair<FileTime, Files::iterator>> found;
  std::vector<std::pair<std::string, Uuid>> marks;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().native();
    std::error_code gone;
    if (const auto client = ClientIn(name)) marks.emplace_back(HashIn(name), *client);
    const std::optional<Uuid> sender = SenderIn(name);
    if (!sender && !IsWhole(name)) continue;
    if (!entry->is_regular_file(gone)) continue;
    const auto file = files_.try_emplace(name).first;
    file->second.size = entry->file_size(gone);
    file->second.client = sender.value_or(Uuid{});
    file->second.is_observed = file->second.client.is_nil();
    wholes_ += IsWhole(name) ? 1 : 0;
    found.emplace_back(entry->last_write_time(gone), file);
  }
  if (error) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("the folder of blobs '{}': {}", folder_.native(), error.message()));
  }
  for (const auto& [hash, client] : marks) {
    const auto file = files_.find(hash);
    const bool is_there = file != files_.end();
    if (is_there && client == kObserved) continue;
    if (is_there && file->second.client.is_nil()) {
      file->second.client = client;
      file->second.is_observed = fs::exists(Mark(hash, kObserved), error);
    } else {
      fs::remove(Mark(hash, client), error);
    }
  }
  std::ranges::sort(found, {}, [](const auto& each) { return each.first; });
  for (const auto& [time, file] : found) {
    file->second.last_use = ++uses_;
    // The wall clock may have been set back since, or forward.
    const auto age = std::chrono::duration_cast<Clock::duration>(FileTime::clock::now() - time);
    file->second.used_at =
        Clock::now() - std::clamp<Clock::duration>(age, Clock::duration::zero(), bounds_.in_use);
    Count(file);
  }
  return {};
}

std::expected<std::uint64_t, Failure> BlobFolder::Put(const wire::BlobPiece& piece,
                                                      const Uuid& client) {
  if (const auto whole = files_.find(piece.sha256); whole != files_.end()) {
    const Result<bool> is_sound = Verify(whole);
    if (!is_sound) return std::unexpected(StorageFailure(is_sound.error()));
    if (!*is_sound) return 0;
    if (whole->second.size != piece.total) {
      return std::unexpected(
          Failure{.code = FailureCode::kInvalidBenchmark,
                  .message = fmt::format("the blob {} has {} bytes, not {}", piece.sha256,
                                         whole->second.size, piece.total)});
    }
    if (auto full = KeepFor(whole, client)) return std::unexpected(*std::move(full));
    Touch(whole);
    return piece.total;
  }
  const std::string name = PartName(piece.sha256, client);
  auto part = files_.find(name);
  if (part != files_.end() && part->second.size > piece.total) {  // its sender lied
    Remove(part);
    part = files_.end();
  }
  std::uint64_t held = part == files_.end() ? 0 : part->second.size;
  if (held < piece.total) {
    if (piece.offset != held || piece.bytes.empty()) return held;
    if (const Status made = MakeFolder(); !made) {
      return std::unexpected(StorageFailure(made.error()));
    }
    const std::uint64_t more = Blocks(held + piece.bytes.size()) - Blocks(held);
    if (auto full = CheckDisk(more)) return std::unexpected(*std::move(full));
    if (auto full = MakeRoom(more, client, name)) return std::unexpected(*std::move(full));
    if (part == files_.end()) {
      const File made{.last_use = ++uses_, .client = client, .is_observed = client == kObserved};
      part = files_.try_emplace(name, made).first;
      Count(part);
    }
    if (const Status written = Append(part, piece.bytes); !written) {
      return std::unexpected(StorageFailure(written.error()));
    }
    held += piece.bytes.size();
  }
  return held == piece.total ? Complete(part) : held;
}

Status BlobFolder::MakeFolder() {
  if (!files_.empty()) return {};
  std::error_code error;
  const bool is_new = fs::create_directories(folder_, error);
  if (!error && is_new) fs::permissions(folder_, fs::perms::owner_all, error);
  if (!error) return {};
  return Fail(ErrorKind::kSystem,
              fmt::format("cannot make '{}': {}", folder_.native(), error.message()));
}

void BlobFolder::Count(Files::iterator file) {
  const std::uint64_t bytes = Blocks(file->second.size);
  bytes_ += bytes;
  for (const Uuid& keeper : KeepersOf(file->second)) {
    Share& share = shares_[keeper];
    share.bytes += bytes;
    share.files.emplace(file->second.last_use, file);
  }
  if (file->second.client.is_nil()) return;
  program_bytes_ += bytes;
  programs_.emplace(file->second.last_use, file);
}

void BlobFolder::Uncount(Files::iterator file) {
  const std::uint64_t bytes = Blocks(file->second.size);
  bytes_ -= bytes;
  for (const Uuid& keeper : KeepersOf(file->second)) {
    const auto share = shares_.find(keeper);
    share->second.bytes -= bytes;
    share->second.files.erase(file->second.last_use);
    if (share->second.files.empty()) shares_.erase(share);
  }
  if (file->second.client.is_nil()) return;
  program_bytes_ -= bytes;
  programs_.erase(file->second.last_use);
}

void BlobFolder::Use(Files::iterator file) {
  Uncount(file);
  file->second.last_use = ++uses_;
  file->second.used_at = Clock::now();
  Count(file);
}

void BlobFolder::Resize(Files::iterator file, std::uint64_t size) {
  Uncount(file);
  file->second.size = size;
  Count(file);
}

std::vector<Uuid> BlobFolder::KeepersOf(const File& file) {
  if (file.client.is_nil()) return {kObserved};
  if (!file.is_observed) return {file.client};
  return {file.client, kObserved};
}

fs::path BlobFolder::Mark(std::string_view hash, const Uuid& client) const {
  return folder_ / fmt::format("{}{}{}", hash, kOf, client.ToString());
}

// A whole that has lost its mark counts for no client after a restart.
void BlobFolder::MakeMark(std::string_view hash, const Uuid& client) {
  const UniqueFd made(
      ::open(Mark(hash, client).c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
}

void BlobFolder::RemoveMarks(Files::iterator file) {
  std::error_code ignored;
  fs::remove(Mark(file->first, file->second.client), ignored);
  fs::remove(Mark(file->first, kObserved), ignored);
}

Status BlobFolder::Append(Files::iterator file, std::string_view bytes) {
  const fs::path path = folder_ / file->first;
  const UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return std::unexpected(SystemError(path, "open"));
  Use(file);
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      Error error = SystemError(path, "write");
      struct stat facts{};
      Resize(file, ::fstat(fd.get(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0);
      return std::unexpected(std::move(error));
    }
    Resize(file, file->second.size + static_cast<std::uint64_t>(written));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::expected<std::uint64_t, Failure> BlobFolder::Complete(Files::iterator part) {
  const std::string name(HashIn(part->first));
  const fs::path path = folder_ / part->first;
  const auto bytes = ReadPart(path, 0, part->second.size);
  if (!bytes) return std::unexpected(StorageFailure(bytes.error()));
  if (const std::string found = Sha256Of(*bytes); found != name) {
    Remove(part);
    return std::unexpected(
        Failure{.code = FailureCode::kInvalidBenchmark,
                .message = fmt::format("the {} bytes that came for the blob {} have the SHA-256 "
                                       "{}; they are gone: send it again",
                                       bytes->size(), name, found)});
  }
  if (!part->second.is_observed) MakeMark(name, part->second.client);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0 || ::rename(path.c_str(), (folder_ / name).c_str()) != 0) {
    return std::unexpected(StorageFailure(SystemError(path, "complete")));
  }
  std::error_code unknown;
  part->second.verified = fs::last_write_time(folder_ / name, unknown);
  Uncount(part);
  const auto whole = files_.emplace(name, part->second).first;
  files_.erase(part);
  Count(whole);
  Touch(whole);
  ++wholes_;
  // The parts of other clients.
  for (auto other = std::next(whole); other != files_.end() && HashIn(other->first) == name;) {
    Remove(other++);
  }
  if (const Status synced = SyncFolder(folder_); !synced) {
    return std::unexpected(StorageFailure(synced.error()));
  }
  return whole->second.size;
}

Result<bool> BlobFolder::Verify(Files::iterator file) {
  const fs::path path = folder_ / file->first;
  std::error_code unknown;
  const auto written = fs::last_write_time(path, unknown);
  if (!unknown && file->second.verified == written) return true;
  const auto whole = ReadPart(path, 0, file->second.size);
  const bool is_gone = !whole && (whole.error().kind == ErrorKind::kCorrupt ||
                                  whole.error().kind == ErrorKind::kNotFound);
  if (!whole && !is_gone) return std::unexpected(whole.error());
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
  Use(file);
  const fs::path path = folder_ / file->first;
  std::error_code ignored;  // then it counts as older after a restart
  fs::last_write_time(path, FileTime::clock::now(), ignored);
  if (file->second.verified) file->second.verified = fs::last_write_time(path, ignored);
}

void BlobFolder::Remove(Files::iterator file) {
  std::error_code ignored;  // it is found again at the next start
  fs::remove(folder_ / file->first, ignored);
  if (IsWhole(file->first)) {
    RemoveMarks(file);
    --wholes_;
  }
  Uncount(file);
  files_.erase(file);
}

std::optional<Failure> BlobFolder::KeepFor(Files::iterator file, const Uuid& keeper) {
  File& kept = file->second;
  if (keeper == kObserved ? kept.is_observed : !kept.client.is_nil()) return std::nullopt;
  if (auto full = MakeRoom(Blocks(kept.size), keeper, file->first)) return full;
  MakeMark(file->first, kObserved);
  if (keeper != kObserved) MakeMark(file->first, keeper);
  Uncount(file);
  kept.is_observed = true;
  if (keeper != kObserved) kept.client = keeper;
  Count(file);
  return std::nullopt;
}

void BlobFolder::GiveUp(Files::iterator file, Uuid keeper) {
  File& kept = file->second;
  if (kept.client.is_nil() || !kept.is_observed) {
    ++removed_;
    return Remove(file);
  }
  Uncount(file);
  if (keeper == kObserved) {
    kept.is_observed = false;
    std::error_code ignored;
    fs::remove(Mark(file->first, kObserved), ignored);
  } else {
    RemoveMarks(file);
    kept.client = kObserved;
  }
  Count(file);
}

std::optional<Failure> BlobFolder::CheckDisk(std::uint64_t bytes) const {
  std::error_code unknown;
  const fs::space_info disk = fs::space(folder_, unknown);
  if (!unknown && disk.available < bytes + bounds_.free_bytes) {
    return Failure{
        .code = FailureCode::kStorageFull,
        .message = fmt::format("the disk of '{}' has {} bytes free; blobs leave {} of it",
                               folder_.native(), disk.available, bounds_.free_bytes)};
  }
  return std::nullopt;
}

std::optional<Failure> BlobFolder::MakeRoom(std::uint64_t bytes, const Uuid& client,
                                            const std::string& keep) {
  if (client.is_nil()) {
    RemoveObserved(bytes, keep);
    return std::nullopt;
  }
  for (auto share = shares_.find(client);
       share != shares_.end() && share->second.bytes + bytes > bounds_.bytes_per_client;
       share = shares_.find(client)) {
    const ByUse::iterator oldest = LongestUnused(share->second.files, keep);
    if (oldest == share->second.files.end() ||
        Clock::now() - oldest->second->second.used_at < bounds_.in_use) {
      return Failure{.code = FailureCode::kQuotaExceeded,
                     .message = fmt::format(
                         "the programs of this client take {} bytes (limit {}, "
                         "--uploads-size-per-client), and each was used within the last {} s",
                         share->second.bytes, bounds_.bytes_per_client, bounds_.in_use.count())};
    }
    GiveUp(oldest->second, client);
  }
  if (RemovePrograms(bytes, keep)) return std::nullopt;
  return Failure{.code = FailureCode::kStorageFull,
                 .message = "the folder of blobs is too small (--uploads-size)"};
}

void BlobFolder::RemoveObserved(std::uint64_t bytes, const std::string& keep) {
  for (auto share = shares_.find(kObserved); share != shares_.end();
       share = shares_.find(kObserved)) {
    if (share->second.bytes + bytes <= bounds_.observed_bytes) return;
    const ByUse::iterator oldest = LongestUnused(share->second.files, keep);
    if (oldest == share->second.files.end()) return;
    GiveUp(oldest->second, kObserved);
  }
}

bool BlobFolder::RemovePrograms(std::uint64_t bytes, const std::string& keep) {
  while (program_bytes_ + bytes > bounds_.bytes) {
    const ByUse::iterator oldest = LongestUnused(programs_, keep);
    if (oldest == programs_.end()) return false;
    GiveUp(oldest->second, oldest->second->second.client);
  }
  return true;
}

BlobFolder::ByUse::iterator BlobFolder::LongestUnused(ByUse& files, const std::string& keep) {
  const auto first = files.begin();
  return first != files.end() && first->second->first == keep ? std::next(first) : first;
}

}  // namespace loopfleet::coordinator
