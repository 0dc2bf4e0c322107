#include "client/cli/commands/offline_database.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "client/cli/exit_code.h"
#include "storage/open.h"

namespace loopfleet::client {

int Complain(const Error& error) {
  fmt::print(stderr, "loopfleet: {}\n", error.message);
  return kExitFailed;
}

std::unique_ptr<storage::Store> OpenToWrite(const std::string& file, const char* option) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    Complain({.kind = ErrorKind::kNotFound, .message = "there is no database " + file});
    return nullptr;
  }
  auto store = storage::OpenStore(file);
  if (store) return *std::move(store);
  Complain(store.error());
  if (store.error().kind == ErrorKind::kUnavailable) {
    fmt::print(stderr, "loopfleet: {}\n",
               option == nullptr ? std::string("stop its coordinator first")
                                 : fmt::format("a coordinator does this by itself, without being "
                                               "stopped: loopfleet-coordinator {} N",
                                               option));
  }
  return nullptr;
}

std::uint64_t FileBytes(const std::string& file) {
  std::error_code unreadable;
  const auto bytes = std::filesystem::file_size(file, unreadable);
  return unreadable ? 0 : bytes;
}

}  // namespace loopfleet::client
