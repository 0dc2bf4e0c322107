// loopfleet._core: loop trees and messages, in the same code as the coordinator and the workers.
// The sockets are in Python.

#include <nanobind/nanobind.h>

#include "client/python/bindings.h"
#include "client/python/conversion.h"
#include "client/python/job_binding.h"

NB_MODULE(_core, module) {
  // A client's thread may hold jobs when the interpreter ends; that is not a leak.
  nanobind::set_leak_warnings(false);
  module.doc() = "Loop trees, jobs, outcomes and messages of loopfleet, as C++ has them.";
  module.attr("__version__") = LOOPFLEET_VERSION;
  loopfleet::python::BindErrors(module);
  loopfleet::python::BindJobs(module);
  loopfleet::python::BindFrames(module);
  loopfleet::python::BindDatabase(module);
  loopfleet::python::BindWalks(module);
  loopfleet::python::BindTrees(module);
  loopfleet::python::BindSearch(module);
  loopfleet::python::BindPasses(module);
  loopfleet::python::BindProfiles(module);
  loopfleet::python::BindTensors(module);
  loopfleet::python::BindKernels(module);
  loopfleet::python::BindLocalTimer(module);
}
