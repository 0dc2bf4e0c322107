#pragma once
// Completion: generates shell scripts that complete `loopfleet`'s command line, from the grammar
// that parses it. Pure.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace loopfleet::client {

enum class Shell : std::uint8_t { kBash, kZsh, kFish };

// A script for the shell to `source`, or to install in its completion directory.
std::string CompletionScript(const CLI::App& app, Shell shell);

}  // namespace loopfleet::client
