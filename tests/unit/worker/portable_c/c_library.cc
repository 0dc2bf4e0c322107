#include "tests/unit/worker/portable_c/c_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/check.h"

namespace loopfleet::worker {

const char* const kStrictC = "-std=c11 -Wall -Wextra -Werror -pedantic";

void CLibrary::Close::operator()(void* handle) const { ::dlclose(handle); }

Status Shell(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return Fail(ErrorKind::kSystem, "popen: no process");
  std::string said;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    said.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Fail(ErrorKind::kInvalid, fmt::format("{}\n{}", command.substr(0, 400), said));
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "lf-test-XXXXXX").native();
  LF_CHECK(::mkdtemp(pattern.data()) != nullptr, "no temporary folder {}", pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string ReadFile(const std::string& path) {
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

Result<CLibrary> CLibrary::Compile(const std::vector<CFile>& files) {
  const TemporaryFolder folder;
  std::string sources;
  for (const CFile& file : files) {
    const std::string path = folder / (file.function + ".c");
    WriteFile(path, file.text);
    sources += " " + path;
  }
  const std::string object = folder / "library.so";
  // -O1, as warnings from the optimiser count as well.
  LF_TRY_VOID(Shell(fmt::format("cc {} -O1 -fPIC -shared -o {}{} -lm", kStrictC, object, sources)));
  CLibrary library;
  library.handle_.reset(::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library.handle_ == nullptr) return Fail(ErrorKind::kSystem, ::dlerror());
  return library;
}

KernelFunction CLibrary::Find(const std::string& function) const {
  return reinterpret_cast<KernelFunction>(::dlsym(handle_.get(), function.c_str()));
}

}  // namespace loopfleet::worker
