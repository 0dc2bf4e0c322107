#pragma once
// What the commands share that work on a database file, without a coordinator.

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "storage/store.h"

namespace loopfleet::client {

// Prints the error; returns the exit status for it.
int Complain(const Error& error);

// Opens it for writing; null: it cannot be, which was printed. `option`: what makes a running
// coordinator do the same; null: there is none.
std::unique_ptr<storage::Store> OpenToWrite(const std::string& file, const char* option);

std::uint64_t FileBytes(const std::string& file);  // 0: it cannot be read

}  // namespace loopfleet::client
