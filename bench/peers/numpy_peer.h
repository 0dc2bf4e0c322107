#pragma once
// NumpyPeer: a python process that runs numpy's side of a contest when told to:
// bench/peers/numpy_peer.py.

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/base/result.h"
#include "common/base/subprocess.h"
#include "common/base/unique_fd.h"

namespace loopfleet::bench {

class NumpyPeer {
 public:
  // kNotFound or kSystem where there is no python3 with numpy.
  static Result<NumpyPeer> Start(const std::filesystem::path& script);

  const std::string& version() const { return version_; }
  // Nanoseconds of one run, of `runs`. Aborts if the process has gone: it has no reason to.
  double Time(const std::string& name, std::int64_t size, int runs);

 private:
  Result<std::string> ReadLine();

  Subprocess process_;
  UniqueFd to_;
  UniqueFd from_;
  std::string version_;
};

}  // namespace loopfleet::bench
