#pragma once
// FakeHost: roots for HostFiles in a temporary folder, removed on destruction.

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "monitoring/host/host_files.h"

namespace loopfleet::monitoring {

class FakeHost {
 public:
  FakeHost() {
    std::string name = (std::filesystem::temp_directory_path() / "loopfleet_host_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(root_ / "proc");
    std::filesystem::create_directories(root_ / "sys");
  }
  ~FakeHost() { std::filesystem::remove_all(root_); }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  void Proc(const std::string& path, const std::string& text) {
    Write(root_ / "proc" / path, text);
  }
  void Sys(const std::string& path, const std::string& text) { Write(root_ / "sys" / path, text); }
  void RemoveSys(const std::string& path) { std::filesystem::remove_all(root_ / "sys" / path); }
  HostFiles files() const { return {root_ / "proc", root_ / "sys"}; }
  const std::filesystem::path& root() const { return root_; }

 private:
  static void Write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }

  std::filesystem::path root_;
};

}  // namespace loopfleet::monitoring
