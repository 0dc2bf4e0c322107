#pragma once
// The backend `cpu` of tensors: kernels compiled by `loopfleet-worker serve` and called in this
// process.

#include <memory>

#include "kernel/local_kernels.h"
#include "tensor/backend.h"

namespace loopfleet {

std::shared_ptr<tensor::Backend> CpuTensorBackend(const CompileService::Options& options,
                                                  VerifyWish verify);

}  // namespace loopfleet
