#pragma once
// BlobFolder: the programs' bitcode that clients sent, in a folder, each file named by the SHA-256
// of its bytes. A program comes in pieces, in order, into HASH.part, which becomes HASH once it is
// whole, its hash is right and it is on disk. So a restart in the middle loses nothing, and no
// reader sees a part. Beyond the bound the longest unused files are removed. Only hashes bytes:
// bitcode is hostile. One thread.

#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "common/wire/message.h"

namespace loopfleet::coordinator {

class BlobFolder {
 public:
  // The folder is made when the first program comes. `max_bytes`: of all files, each counted in
  // blocks of 4 KiB; at least twice a program.
  static Result<BlobFolder> Open(std::filesystem::path folder, std::uint64_t max_bytes);

  // How much of the program is held afterwards. A piece that does not begin there is not kept.
  // INVALID_BENCHMARK: the whole has another hash, and is gone; or the named program has another
  // size, and stays. STORAGE_FULL: the disk is full, or fails.
  std::expected<std::uint64_t, Failure> Put(const wire::BlobPiece& piece);
  // `total` 0: there is no such program, or its file was damaged and is gone. kSystem: the file
  // cannot be read now, and stays.
  Result<wire::BlobPiece> Get(const wire::BlobWanted& wanted);

  std::uint64_t bytes() const { return bytes_; }
  std::size_t programs() const { return programs_; }  // whole ones
  std::uint64_t removed() const { return removed_; }  // to make room
  std::uint64_t damaged() const { return damaged_; }  // files with another hash than their name

 private:
  struct File {
    std::uint64_t size = 0;
    std::uint64_t last_use = 0;
    // When it was last written, as of the last time that its hash was right in this process.
    std::optional<std::filesystem::file_time_type> verified;
  };
  using Files = std::map<std::string, File>;  // by file name

  BlobFolder(std::filesystem::path folder, std::uint64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  Status Scan();
  Status MakeFolder();
  Status Append(const std::string& name, std::string_view bytes);
  std::expected<std::uint64_t, Failure> Complete(const std::string& name);
  // Notes the use on disk, too, so that it counts after a restart.
  void Touch(Files::iterator file);
  void Remove(Files::iterator file);
  // False: it is damaged, and gone.
  Result<bool> Verify(Files::iterator file);
  // False: what is left is `keep`.
  bool MakeRoom(std::uint64_t bytes, const std::string& keep);

  std::filesystem::path folder_;
  std::uint64_t max_bytes_;
  Files files_;
  std::size_t programs_ = 0;
  std::uint64_t bytes_ = 0;  // of all files, in blocks
  std::uint64_t uses_ = 0;
  std::uint64_t removed_ = 0;
  std::uint64_t damaged_ = 0;
};

}  // namespace loopfleet::coordinator
