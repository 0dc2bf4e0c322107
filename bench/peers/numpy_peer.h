#pragma once
// NumpyPeer: a Python process (bench/peers/numpy_peer.py) that runs numpy's side of a contest on
// request.

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/base/result.h"
#include "common/base/subprocess.h"
#include "common/base/unique_fd.h"

namespace loopfleet::bench {

class NumpyPeer {
 public:
  // kNotFound or kSystem if python3 or numpy is not installed.
  static Result<NumpyPeer> Start(const std::filesystem::path& script);

  const std::string& version() const { return version_; }
  // Mean nanoseconds of one run over `runs` runs. Aborts if the process has exited.
  double Time(const std::string& name, std::int64_t size, int runs);

 private:
  Result<std::string> ReadLine();

  Subprocess process_;
  UniqueFd to_;
  UniqueFd from_;
  std::string version_;
};

}  // namespace loopfleet::bench
