#include "worker/llvm_env/programs/program_folder.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

#include "common/base/check.h"
#include "common/base/sha256.h"
#include "common/llvm_passes/debian_programs.h"

namespace loopfleet::worker {

Result<std::string> ProgramFolder::Read(const passes::DebianProgram& program) const {
  const passes::DebianPin* pin = passes::FindDebianPin(program.name);
  LF_CHECK(pin != nullptr, "debian-v0 has no {}", program.name);
  return ReadVerified(
      program.name + ".bc", pin->sha256,
      fmt::format("deploy/llvm/build_debian.py FOLDER --only {} makes it", program.name));
}

Result<std::string> ProgramFolder::Read(const passes::BitcodeProgram& program) const {
  return ReadVerified(passes::BitcodeFile(program.sha256), program.sha256,
                      "loopfleet llvm add FILE --llvm-programs FOLDER puts it there");
}

Result<std::string> ProgramFolder::ReadVerified(const std::filesystem::path& name,
                                                std::string_view sha256,
                                                std::string_view remedy) const {
  if (folder_.empty()) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("this worker has no folder of programs: {}, and "
                            "loopfleet-worker --llvm-programs FOLDER serves it",
                            remedy));
  }
  const std::filesystem::path path = folder_ / name;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("{} on the worker: {}; {}", path.string(), error.message(), remedy));
  }
  if (size > passes::kMostBitcodeBytes) {
    return Fail(ErrorKind::kInvalid, fmt::format("{} on the worker has {} bytes; at most {}",
                                                 path.string(), size, passes::kMostBitcodeBytes));
  }
  std::string bytes(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("{} on the worker cannot be read; {}", path.string(), remedy));
  }
  if (const std::string found = Sha256Of(bytes); found != sha256) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} on the worker has the SHA-256 {}, not {}; remove it, then {}",
                            path.string(), found, sha256, remedy));
  }
  return bytes;
}

}  // namespace loopfleet::worker
