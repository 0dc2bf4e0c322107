#pragma once
// CLibrary: compiles C files with the system's compiler, under the strict flags that CSource
// promises to pass, and loads them into this process.

#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "kernel/kernel.h"

namespace loopfleet::worker {

struct CFile {
  std::string function;  // defined by the file; unique in a library
  std::string text;
};

class CLibrary {
 public:
  // kInvalid, with the compiler's output: a file does not compile without a warning.
  static Result<CLibrary> Compile(const std::vector<CFile>& files);

  KernelFunction Find(const std::string& function) const;  // null: not found

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Close> handle_;
};

// The compiler flags, also for tests that cross-compile: "-std=c11 ...".
extern const char* const kStrictC;

// Runs a shell command. kInvalid, with its output: it did not exit with 0.
Status Shell(const std::string& command);

// A new directory in the system's directory for temporary files, removed by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void WriteFile(const std::string& path, const std::string& bytes);
std::string ReadFile(const std::string& path);

}  // namespace loopfleet::worker
