#pragma once
// WasmModuleOf: what a linker would do to a WebAssembly object of one kernel.

#include <string>
#include <string_view>

#include "common/base/result.h"

namespace loopfleet::worker {

// From an object file that CpuCompiler made for kWasm32, a module that runtimes load: it imports
// the memory `env.memory` and the functions of the C library that it calls, from `env` too, and
// exports the function `loopfleet_kernel`, whose argument is the address of the table of buffers,
// 4 bytes each. `facts` goes into the custom section `loopfleet.facts`. kCorrupt: the object has
// anything else, such as data of its own.
Result<std::string> WasmModuleOf(std::string_view object, std::string_view facts);

}  // namespace loopfleet::worker
