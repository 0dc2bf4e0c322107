#include "client/cli/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "client/cli/exit_code.h"
#include "client/cli/interrupt.h"
#include "common/base/number_in.h"
#include "common/base/printable.h"

namespace loopfleet::client {

Answer<Client> Connect(const ClientSettings& settings) {
  ClientOptions options{.address = settings.address,
                        .keys = settings.keys,
                        .program = "loopfleet " LOOPFLEET_VERSION,
                        .stop = &InterruptFlag(),
                        .on_wait = [](const std::string& why) {
                          fmt::print(stderr, "loopfleet: {}\n", Printable(why));
                        }};
  if (settings.timeout_s > 0) {
    // Cap the timeout: a century fits in 64-bit nanoseconds, more does not.
    const double bounded = std::min(settings.timeout_s, 3e9);
    const auto timeout = std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(bounded));
    options.deadline = SystemClock().Now() + timeout;
    options.connect_limit = std::min(options.connect_limit, timeout * 9 / 10);
  }
  auto client = Client::Connect(options);
  if (!client && client.error().kind == ErrorKind::kUnavailable) {
    client.error().message += fmt::format(
        "; is it running? `loopfleet local` starts a cluster on this machine, --address or "
        "LOOPFLEET_ADDRESS names another");
  }
  return client;
}

int Report(const CallError& error) {
  fmt::print(stderr, "loopfleet: {}\n", Printable(error.message, "\n\t"));
  if (error.refusal) return kExitFailed;
  switch (error.kind) {
    case ErrorKind::kUnavailable: return kExitUnreachable;
    case ErrorKind::kTimeout: return kExitTimedOut;
    case ErrorKind::kClosed: return kExitInterrupted;
    case ErrorKind::kInvalid: return kExitUsage;
    case ErrorKind::kNotFound:
    case ErrorKind::kExists:
    case ErrorKind::kCorrupt:
    case ErrorKind::kFull:
    case ErrorKind::kSystem: return kExitFailed;
  }
  return kExitFailed;
}

Answer<BatchId> FindBatch(Client& client, const std::string& text) {
  if (text == "last") {
    LF_TRY(const auto info, client.ShowBatch(BatchId{}));
    return info.batch;
  }
  const BatchId batch{NumberIn<std::uint64_t>(text).value_or(0)};
  if (!batch) {
    return std::unexpected(
        CallError{.kind = ErrorKind::kInvalid,
                  .message = fmt::format("'{}' is not a batch: give its number, or 'last'", text)});
  }
  return batch;
}

}  // namespace loopfleet::client
