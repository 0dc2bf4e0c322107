#pragma once
// What a fuzz target defines: libFuzzer's entry point. It returns 0 for every input; whatever is
// wrong with an answer aborts (LF_CHECK), so that every runner sees it.

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
