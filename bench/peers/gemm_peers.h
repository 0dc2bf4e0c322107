#pragma once
// The libraries that a matrix product is compared with, from Debian's packages, each on one thread.

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace loopfleet::bench {

// Row-major c = a * b, all `size` by `size`.
struct GemmPeer {
  std::string name;  // with the kernels that the library chose for this machine
  std::function<void(const float* a, const float* b, float* c)> multiply;  // empty: not here
  std::string missing;                                                     // why, then
};

// OpenBLAS, BLIS, LIBXSMM: one entry for each, found or not. Libraries stay loaded.
std::vector<GemmPeer> GemmPeers(int size);

}  // namespace loopfleet::bench
