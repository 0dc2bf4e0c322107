#pragma once
// ViewEquations: a view of an IR from loop_tool's equations, in which symbols stand for vars.

#include <nanobind/nanobind.h>

#include <vector>

#include "client/python/ir_builder.h"

namespace loopfleet::python {

// A view of `input` with the dims `vars`; what lies outside of the input reads 0. `equations`:
// pairs of equal expressions, as for a tensor's `to`. `symbols`: a dict from a Symbol, or its hash,
// to the var that it stands for. A var in both needs no equation. An equation for the size of a var
// gives it that size, unless it depends on one that is not known yet: then the loops over it tell.
// Raises ViewError as `to` does, ScheduleError for a symbol that stands for no var, for a size that
// is not whole and for two sizes of one var.
looptree::NodeId CreateViewOf(IrBuilder& ir, looptree::NodeId input,
                              std::vector<looptree::DimId> vars, nanobind::handle equations,
                              nanobind::handle symbols);

}  // namespace loopfleet::python
