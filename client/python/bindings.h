#pragma once
// The parts of the Python module (module.cc). Each adds its classes and functions to it;
// job_binding.h has the one of jobs, whose types others use.

#include <nanobind/nanobind.h>

namespace loopfleet::python {

// IR: a program and its loops, made node by node.
void BindIr(nanobind::module_& module);

// LoopTree, Loop and IR: trees for scripts, and their transformations.
void BindTrees(nanobind::module_& module);

// Walk: a benchmark, the actions so far and the tree that they lead to, for both dialects.
// Environments are built on it.
void BindWalks(nanobind::module_& module);

// The client protocol's messages, encoded and decoded for a transport in Python (pyzmq).
void BindFrames(nanobind::module_& module);

// The outcomes of a database file, for data sets (loopfleet.rows).
void BindDatabase(nanobind::module_& module);

// Exploration: the strategies of `loopfleet search`, for a transport in Python.
void BindSearch(nanobind::module_& module);

// The vocabulary of pass ordering (common/llvm_passes).
void BindPasses(nanobind::module_& module);

// Jobs that ask where the time goes, and their answers (common/job/profile.h).
void BindProfiles(nanobind::module_& module);

// loopfleet.tensor. Arrays come in and go out without copies where their memory allows it.
void BindTensors(nanobind::module_& module);

// CompiledTensor: a tensor's program as a function of arrays, what lt.compile gives.
void BindCompiledTensor(nanobind::module_& module);

// What runs Python's tensors: code compiled by `loopfleet-worker serve`, or the interpreter.
void BindKernels(nanobind::module_& module);

// LocalTimer: how long loop trees take in this process, for a first figure within tens of
// milliseconds. It is no measurement: nothing keeps the machine quiet, and nothing grades it.
void BindLocalTimer(nanobind::module_& module);

}  // namespace loopfleet::python
