#pragma once
// BlobFolder: programs' bitcode that clients sent, and large values that workers observed, in a
// folder, each file named by the SHA-256 of its bytes. A blob comes in pieces, in order, into
// HASH.CLIENT.part (of workers: HASH.part), which becomes HASH once it is whole, its hash is right
// and it is on disk. So a restart in the middle loses nothing, no reader sees a part, and no client
// can spoil another's. Beyond a bound the longest unused files are removed, parts among them. A
// whole counts for the client that sent it, which the empty file HASH.of-CLIENT tells after a
// restart; without one it is an observed value. Programs and observed values have room of their
// own. What is both (HASH.of-CLIENT and HASH.of-000...) takes room of both, and is removed when
// neither has any for it: no client's program makes another's observed value go. Only hashes bytes:
// bitcode is hostile. One thread.

#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "common/wire/message.h"

namespace loopfleet::coordinator {

class BlobFolder {
 public:
  // Sizes of files are counted in blocks of 4 KiB.
  struct Bounds {
    std::uint64_t bytes = std::uint64_t{1} << 30;               // of programs; at least two
    std::uint64_t bytes_per_client = std::uint64_t{256} << 20;  // likewise
    std::uint64_t observed_bytes = std::uint64_t{512} << 20;    // of observed values; at least two
    std::uint64_t free_bytes = std::uint64_t{64} << 20;         // that blobs leave of the disk
    // After its last use a file stays for so long, if only its own client wants room.
    std::chrono::seconds in_use{300};
  };
  // The folder is made when the first blob comes.
  static Result<BlobFolder> Open(std::filesystem::path folder, const Bounds& bounds);

  // How much of the blob is held afterwards: the whole, or the client's own part. A piece that does
  // not begin there is not kept. A nil client: an observed value. INVALID_BENCHMARK: the whole has
  // another hash, and is gone; or the named blob has another size, and stays. QUOTA_EXCEEDED: the
  // client's files, all in use, leave no room. STORAGE_FULL: the disk is full, or fails.
  std::expected<std::uint64_t, Failure> Put(const wire::BlobPiece& piece, const Uuid& client);
  // `total` 0: there is no such blob, or its file was damaged and is gone. kSystem: the file
  // cannot be read now, and stays.
  Result<wire::BlobPiece> Get(const wire::BlobWanted& wanted);

  std::uint64_t bytes() const { return bytes_; }
  std::size_t blobs() const { return wholes_; }       // whole ones
  std::uint64_t removed() const { return removed_; }  // to make room
  std::uint64_t damaged() const { return damaged_; }  // files with another hash than their name

 private:
  using Clock = std::chrono::steady_clock;
  using FileTime = std::filesystem::file_time_type;
  struct File {
    std::uint64_t size = 0;
    std::uint64_t last_use = 0;  // a number; no two files have the same
    Clock::time_point used_at{};
    Uuid client{};             // whose program it is; nil: no client's
    bool is_observed = false;  // a worker's; true if it is no client's program
    // When it was last written, as of the last time that its hash was right in this process.
    std::optional<FileTime> verified{};
  };
  using Files = std::map<std::string, File>;               // by file name
  using ByUse = std::map<std::uint64_t, Files::iterator>;  // the longest unused first
  struct Share {
    std::uint64_t bytes = 0;
    ByUse files;
  };

  static constexpr Uuid kObserved{};  // in place of a client: who keeps observed values

  BlobFolder(std::filesystem::path folder, const Bounds& bounds)
      : folder_(std::move(folder)), bounds_(bounds) {}

  Status Scan();
  Status MakeFolder();
  Status Append(Files::iterator file, std::string_view bytes);
  std::expected<std::uint64_t, Failure> Complete(Files::iterator part);
  // A file is counted under its size, use and keepers, so each changes in between.
  void Count(Files::iterator file);
  void Uncount(Files::iterator file);
  void Use(Files::iterator file);
  void Resize(Files::iterator file, std::uint64_t size);
  static std::vector<Uuid> KeepersOf(const File& file);
  std::filesystem::path Mark(std::string_view hash, const Uuid& client) const;
  void MakeMark(std::string_view hash, const Uuid& client);
  void RemoveMarks(Files::iterator file);
  // Notes the use on disk, too, so that it counts after a restart.
  void Touch(Files::iterator file);
  void Remove(Files::iterator file);
  // False: it is damaged, and gone.
  Result<bool> Verify(Files::iterator file);
  // From now on the whole is kept for this keeper, too: a client, unless another one has it, or the
  // observed values.
  std::optional<Failure> KeepFor(Files::iterator file, const Uuid& keeper);
  // Makes room: removes the file, unless it has another keeper.
  void GiveUp(Files::iterator file, Uuid keeper);
  std::optional<Failure> CheckDisk(std::uint64_t bytes) const;
  // Room in `keep` for so much more of the client's programs; of a nil one: of observed values.
  std::optional<Failure> MakeRoom(std::uint64_t bytes, const Uuid& client, const std::string& keep);
  void RemoveObserved(std::uint64_t bytes, const std::string& keep);
  // False: what is left is `keep`.
  bool RemovePrograms(std::uint64_t bytes, const std::string& keep);
  static ByUse::iterator LongestUnused(ByUse& files, const std::string& keep);  // not `keep`

  std::filesystem::path folder_;
  Bounds bounds_;
  Files files_;
  ByUse programs_;                // and parts of programs
  std::map<Uuid, Share> shares_;  // of keepers with files
  std::size_t wholes_ = 0;
  std::uint64_t bytes_ = 0;          // of all files, in blocks
  std::uint64_t program_bytes_ = 0;  // of programs_
  std::uint64_t uses_ = 0;
  std::uint64_t removed_ = 0;
  std::uint64_t damaged_ = 0;
};

}  // namespace loopfleet::coordinator
