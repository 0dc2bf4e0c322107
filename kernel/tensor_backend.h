#pragma once
// The backend `cpu` of tensors: kernels compiled by `loopfleet-worker serve` and called in this
// process.

#include <memory>

#include "kernel/local_kernels.h"
#include "tensor/backend.h"

namespace loopfleet {

std::shared_ptr<tensor::Backend> CpuTensorBackend(const CompileService::Options& options,
                                                  VerifyWish verify);

// The backend `isolated`: kernels run in a sandboxed child of the service, on copies of their
// tensors. For schedules of strangers, and where this process may not execute code that it wrote.
// It protects this process; nothing compares the values.
std::shared_ptr<tensor::Backend> IsolatedTensorBackend(const CompileService::Options& options);

}  // namespace loopfleet
