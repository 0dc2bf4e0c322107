#pragma once
// Libraries that our matrix products are benchmarked against: Debian's packages, one thread each.

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace loopfleet::bench {

// Row-major c = a * b, all `size` by `size`.
struct GemmPeer {
  std::string name;  // includes the kernels that the library chose for this machine
  std::function<void(const float* a, const float* b, float* c)> multiply;  // empty: not installed
  std::string missing;  // why `multiply` is empty
};

// One entry each for OpenBLAS, BLIS and LIBXSMM, installed or not. Libraries stay loaded.
std::vector<GemmPeer> GemmPeers(int size);

}  // namespace loopfleet::bench
