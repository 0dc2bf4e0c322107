#pragma once
// The coordinator's settings, read from the command line, the environment and the configuration
// file.

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "coordinator/core/contract/limits.h"
#include "monitoring/site.h"

namespace loopfleet::coordinator {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadConfig = 78;  // EX_CONFIG

struct CoordinatorOptions {
  std::string listen_clients = "tcp://127.0.0.1:5570";
  std::string listen_workers = "tcp://127.0.0.1:5571";
  std::string http = "127.0.0.1:9570";
  std::string metrics;  // HOST:PORT of a listener without the page; "": http alone
  monitoring::Audience page_audience = monitoring::Audience::kThisMachine;
  std::vector<std::string> page_hosts;  // host names accepted in requests for the page
  std::filesystem::path database = "loopfleet.db";
  std::uint32_t keep_samples_days = 0;  // how long raw samples are kept; 0: unlimited
  std::uint32_t keep_batches_days = 0;  // how long finished batches are kept; 0: unlimited
  // Bitcode that clients send, and observed values that workers send: their folder (by default the
  // database's name and ".uploads"), and what they may take, of all clients, of one, of workers.
  std::filesystem::path uploads;
  std::uint64_t uploads_bytes = std::uint64_t{1} << 30;
  std::uint64_t uploads_bytes_per_client = std::uint64_t{256} << 20;
  std::uint64_t observed_bytes = std::uint64_t{512} << 20;
  std::string results;         // a PostgreSQL database (docs/POSTGRES.md); "": none
  std::filesystem::path keys;  // directory; empty: no keys
  Limits limits;               // its …_per_client fields, and what `memory_bytes` decides
  // What the coordinator may take. Default: the limit of its control group, else half of the
  // machine's memory.
  std::uint64_t memory_bytes = 0;
  log::Level log_level = log::Level::kInfo;
  std::vector<std::string> unknown_variables;  // UnknownVariables(): to be logged
};

// Why the daemon does not start: help was requested (exit code 0, text for stdout), or a setting is
// wrong.
struct StartupExit {
  int exit_code = kExitUsage;
  std::string text;
};

std::expected<CoordinatorOptions, StartupExit> ParseCoordinatorOptions(int argc,
                                                                       const char* const* argv);

}  // namespace loopfleet::coordinator
