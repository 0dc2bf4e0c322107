#pragma once
// CublasPeer: NVIDIA's float32 matrix product, to compare our schedules with. Opened at run time if
// it is installed. Without tensor cores (TF32 off). Used by one thread.

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "worker/gpu/device/cuda_driver.h"

namespace loopfleet::worker {

class CublasPeer {
 public:
  // The calling thread must have the device's context. kNotFound, kSystem: with what is missing.
  static Result<std::unique_ptr<CublasPeer>> Open(const CudaDriver& driver);
  ~CublasPeer();

  const std::string& version() const { return version_; }
  // Queues c = a * b, for square row-major matrices.
  CudaCode Start(int size, CudaAddress a, CudaAddress b, CudaAddress c);

 private:
  struct Functions;
  CublasPeer();
  std::unique_ptr<Functions> functions_;
  void* handle_ = nullptr;
  std::string version_;
};

}  // namespace loopfleet::worker
