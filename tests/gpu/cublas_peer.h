#pragma once
// CublasPeer: NVIDIA's own float32 matrix product, opened at run time where it is there: what our
// schedules are compared with. Without tensor cores (TF32 off).

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "worker/gpu/device/cuda_driver.h"

namespace loopfleet::worker {

class CublasPeer {
 public:
  // The calling thread has the device's context. kNotFound, kSystem: with what is missing.
  static Result<std::unique_ptr<CublasPeer>> Open(const CudaDriver& driver);
  ~CublasPeer();

  const std::string& version() const { return version_; }
  // Queues c = a * b of square matrices, row by row in memory.
  CudaCode Start(int size, CudaAddress a, CudaAddress b, CudaAddress c);

 private:
  struct Functions;
  CublasPeer();
  std::unique_ptr<Functions> functions_;
  void* handle_ = nullptr;
  std::string version_;
};

}  // namespace loopfleet::worker
