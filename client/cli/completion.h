#pragma once
// Completion: what a shell needs to know to complete `loopfleet`'s command line, written from the
// same grammar that parses it. Pure.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace loopfleet::client {

enum class Shell : std::uint8_t { kBash, kZsh, kFish };

// A script for the shell to read: `source` it, or install it where the shell looks.
std::string CompletionScript(const CLI::App& app, Shell shell);

}  // namespace loopfleet::client
