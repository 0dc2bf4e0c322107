#pragma once
// CLibrary: C files through the system's compiler, as strictly as CSource promises to survive, and
// into this process.

#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "worker/backend/kernel.h"

namespace loopfleet::worker {

struct CFile {
  std::string function;  // what it defines; different in each file of a library
  std::string text;
};

class CLibrary {
 public:
  // kInvalid, with what the compiler said: a file does not compile without a warning.
  static Result<CLibrary> Compile(const std::vector<CFile>& files);

  KernelFunction Find(const std::string& function) const;  // null: there is none

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Close> handle_;
};

// The flags, for those who cross-compile: "-std=c11 ...".
extern const char* const kStrictC;

// Runs a command of the shell. kInvalid, with its output: it did not exit with 0.
Status Shell(const std::string& command);

// A new directory under the system's one for temporary files, removed with the object.
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
