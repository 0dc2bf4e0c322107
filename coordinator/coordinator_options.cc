#include "coordinator/coordinator_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "common/base/enum_names.h"
#include "common/base/log.h"
#include "common/base/memory_limit.h"
#include "common/base/settings.h"
#include "common/wire/bounds.h"
#include "common/wire/keys/key_directory.h"
#include "common/wire/transport/endpoint.h"
#include "coordinator/memory_budget.h"
#include "storage/postgres/postgres_address.h"

namespace loopfleet::coordinator {
namespace {

constexpr const char* kFooter =
    "Settings: flags, then environment variables (LOOPFLEET_COORDINATOR_ and the flag's name, "
    "such\n"
    "as LOOPFLEET_COORDINATOR_LISTEN_CLIENTS), then the table [coordinator] of the file that\n"
    "--config names.\n"
    "Exit codes: 0 ended as asked, 1 failed while running, 2 usage, 78 bad configuration.";

std::unexpected<StartupExit> BadConfig(const std::string& text) {
  return std::unexpected(StartupExit{.exit_code = kExitBadConfig,
                                     .text = fmt::format("loopfleet-coordinator: {}\n", text)});
}

// What the coordinator takes if it is not told. A control group's limit is never exceeded, even if
// it is below what --memory would allow.
std::uint64_t DefaultMemoryBytes() {
  const MemoryLimit limit = ReadMemoryLimit();
  const std::uint64_t bytes = limit.group_bytes != 0 ? limit.group_bytes : limit.host_bytes / 2;
  return bytes != 0 ? bytes : MemoryBudget::kLeast;  // 0: this system does not say
}

void AddQuotas(CLI::App& app, Limits& limits) {
  constexpr std::uint64_t kAtLeast = 1;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  const CLI::Range range(kAtLeast, kMost);
  const CLI::Range range32(kAtLeast, std::uint64_t{UINT32_MAX});
  app.add_option("--max-jobs", limits.max_unfinished_jobs, "Unfinished jobs of all clients")
      ->check(range32)
      ->capture_default_str();
  app.add_option("--max-jobs-per-client", limits.max_unfinished_jobs_per_client,
                 "Unfinished jobs of one client")
      ->check(range32)
      ->capture_default_str();
  app.add_option("--max-batches-per-client", limits.max_unfinished_batches_per_client,
                 "Unfinished batches of one client")
      ->check(range32)
      ->capture_default_str();
  app.add_option("--max-bytes-per-client", limits.max_unfinished_bytes_per_client,
                 "Memory that the unfinished jobs of one client may take, such as 1GiB")
      ->transform(CLI::AsSizeValue(false))
      ->check(range)
      ->capture_default_str();
  app.add_option("--max-requests-per-second-per-client", limits.max_requests_per_second_per_client,
                 "Messages of one client, on average; for one second at once as many")
      ->check(CLI::Range(kAtLeast, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--max-connections-per-client", limits.max_connections_per_client,
                 "Connections of one client that are remembered; beyond, the longest silent one "
                 "says hello again")
      ->check(range32)
      ->capture_default_str();
}

void AddGrace(CLI::App& app, Limits& limits) {
  constexpr std::uint32_t kMost = 7 * 24 * 3600;
  app.add_option_function<std::uint32_t>(
         "--no-worker-grace",
         [&limits](std::uint32_t seconds) {
           limits.no_worker_grace = std::chrono::seconds(seconds);
         },
         "Seconds that a job waits while no worker could run it; then it ends with "
         "NO_MATCHING_WORKER. More where new workers take longer to start")
      ->check(CLI::Range(1U, kMost))
      ->default_str(fmt::format("{}", limits.no_worker_grace.count()));
}

std::optional<monitoring::Audience> ParseAudience(const std::string& name) {
  using monitoring::Audience;
  static const std::map<std::string, Audience> kAudiences = {{"machine", Audience::kThisMachine},
                                                             {"everybody", Audience::kEverybody},
                                                             {"nobody", Audience::kNobody}};
  const auto audience = kAudiences.find(name);
  if (audience == kAudiences.end()) return std::nullopt;
  return audience->second;
}

}  // namespace

std::expected<CoordinatorOptions, StartupExit> ParseCoordinatorOptions(int argc,
                                                                       const char* const* argv) {
  CoordinatorOptions options;
  std::string database = options.database.native();
  std::string uploads;
  std::string keys;
  std::string config_file;
  std::string page = "machine";
  std::string log_level = "info";
  CLI::App app("The loopfleet coordinator: queues jobs, hands them to workers, keeps outcomes",
               "loopfleet-coordinator");
  app.footer(kFooter);
  app.add_option("--listen-clients", options.listen_clients, "Endpoint for clients")
      ->capture_default_str();
  app.add_option("--listen-workers", options.listen_workers, "Endpoint for workers")
      ->capture_default_str();
  app.add_option("--http", options.http,
                 "HOST:PORT of the page, /metrics and /healthz; port 0 takes any")
      ->capture_default_str();
  app.add_option("--metrics", options.metrics,
                 "HOST:PORT of one more listener, for /metrics and the health checks alone, with "
                 "threads of its own");
  app.add_option("--page", page,
                 "Who may look at the web page on --http: machine (connections from this machine, "
                 "ssh -L among them), everybody, or nobody")
      ->capture_default_str();
  app.add_option("--page-host", options.page_hosts,
                 "A name that browsers call this machine by, beside its own; may be given again");
  app.add_option("--db", database, "Database file; made if it is not there")->capture_default_str();
  app.add_option(
      "--uploads", uploads,
      "Folder for the bitcode that clients send (loopfleet llvm add) and for large values "
      "that workers observe. Not given: the database's name with .uploads");
  const CLI::Range sizes(std::uint64_t{2} * wire::kMaxBlobBytes, std::uint64_t{1} << 50);
  app.add_option("--uploads-size", options.uploads_bytes,
                 "What this bitcode may take, such as 4GiB; beyond, the longest unused is removed")
      ->transform(CLI::AsSizeValue(false))
      ->check(sizes)
      ->capture_default_str();
  app.add_option(
         "--uploads-size-per-client", options.uploads_bytes_per_client,
         "What one client's bitcode may take; beyond, its longest unused is removed, unless it was "
         "in use a short time ago (QUOTA_EXCEEDED)")
      ->transform(CLI::AsSizeValue(false))
      ->check(sizes)
      ->capture_default_str();
  app.add_option("--observed-size", options.observed_bytes,
                 "What the observed values may take; beyond, the longest unused is removed")
      ->transform(CLI::AsSizeValue(false))
      ->check(sizes)
      ->capture_default_str();
  app.add_option("--keep-samples-days", options.keep_samples_days,
                 "Days that the raw samples of a result are kept; later they are taken away, a few "
                 "at a time, and its figures stay (docs/DATABASE.md). Not given: forever")
      ->check(CLI::Range(std::uint32_t{1}, std::uint32_t{36'500}));
  app.add_option("--keep-batches-days", options.keep_batches_days,
                 "Days that a batch is kept after its last job; later its requests, jobs, outcomes "
                 "and known failures are removed, a few at a time, and its results stay "
                 "(docs/DATABASE.md). Not given: forever")
      ->check(CLI::Range(std::uint32_t{1}, std::uint32_t{36'500}));
  app.add_option("--results", options.results,
                 "A PostgreSQL database that finished outcomes are copied to, as libpq reads it: "
                 "postgresql://user@host/database (docs/POSTGRES.md). Everyone on this machine can "
                 "read a command line: keep passwords in ~/.pgpass or in the environment");
  app.add_option("--keys", keys,
                 "Directory of the coordinator's key and of those it lets in (loopfleet keygen); "
                 "without it only this machine is served");
  app.add_option("--memory", options.memory_bytes,
                 "Memory that the coordinator may take, such as 4GiB: beyond its share, clients "
                 "are refused for a while (BUSY). Not given: the limit of its control group, else "
                 "half of the machine's")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(MemoryBudget::kLeast, std::uint64_t{1} << 50));
  AddQuotas(app, options.limits);
  AddGrace(app, options.limits);
  app.add_option("--log-level", log_level, "debug, info, warning or error")->capture_default_str();
  app.add_option("--config", config_file, "TOML file with a table [coordinator]");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return std::unexpected(StartupExit{.exit_code = 0, .text = app.help()});
  } catch (const CLI::ParseError& error) {
    return std::unexpected(StartupExit{.exit_code = kExitUsage, .text = UsageText(app, error)});
  }
  const auto file = config_file.empty() ? std::nullopt : std::optional(config_file);
  constexpr std::string_view kPrefix = "LOOPFLEET_COORDINATOR_";
  if (const Status applied =
          ApplySettings(app, {.table = "coordinator", .environment_prefix = kPrefix, .file = file});
      !applied) {
    return BadConfig(applied.error().message);
  }
  options.unknown_variables = UnknownVariables(app, kPrefix);
  if (options.memory_bytes == 0) options.memory_bytes = DefaultMemoryBytes();
  MemoryBudget(options.memory_bytes).Apply(options.limits);
  if (app.count("--results") > 0 || !options.results.empty()) {
    if (const Status usable = storage::CheckPostgresAddress(options.results); !usable) {
      return BadConfig(fmt::format("--results: {}", usable.error().message));
    }
  }
  options.keys = keys;
  if (!keys.empty()) {
    if (const auto own = wire::LoadCoordinatorKeys(options.keys); !own) {
      return BadConfig(fmt::format("--keys: {}", own.error().message));
    }
    if (const auto loaded = wire::LoadAuthorizedKeys(options.keys); !loaded) {
      return BadConfig(fmt::format("--keys: {}", loaded.error().message));
    }
  }
  const auto protection = keys.empty() ? wire::Protection::kNone : wire::Protection::kKeys;
  for (const auto& [name, endpoint] : {std::pair{"--listen-clients", options.listen_clients},
                                       std::pair{"--listen-workers", options.listen_workers}}) {
    if (const Status usable = wire::CheckListenEndpoint(endpoint, protection); !usable) {
      return BadConfig(fmt::format("{}: {}", name, usable.error().message));
    }
  }
  const auto audience = ParseAudience(page);
  if (!audience) {
    return BadConfig(fmt::format("--page {}: use machine, everybody or nobody", page));
  }
  options.page_audience = *audience;
  const auto level = ValueNamed<log::Level>(log_level);
  if (!level) {
    return BadConfig(fmt::format("--log-level {}: use debug, info, warning or error", log_level));
  }
  options.log_level = *level;
  options.database = database;
  options.uploads = uploads.empty() ? database + ".uploads" : uploads;
  return options;
}

}  // namespace loopfleet::coordinator
