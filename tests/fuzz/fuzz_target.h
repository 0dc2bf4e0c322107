#pragma once
// The function that a fuzz target defines: libFuzzer's entry point. It returns 0 for every input; a
// wrong result aborts (LF_CHECK), so that every runner sees it.

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
