#include "worker/worker_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/log.h"
#include "common/base/number_in.h"
#include "common/base/settings.h"
#include "common/base/suggestion.h"
#include "common/job/job_spec.h"
#include "common/wire/codec/utf8.h"
#include "common/wire/hardware_label.h"
#include "common/wire/keys/key_directory.h"

namespace loopfleet::worker {
namespace {

// Options as given, before it is checked whether this version supports them.
struct RawOptions {
  std::string device = "cpu";
  std::string log_level = "info";
  std::string sandbox = "any";
  std::int64_t compile_limit_ms = 2'000;
  std::int64_t run_limit_ms = 10'000;
  std::int64_t awake_ms = 1'000;
  std::string config_file;
};

constexpr const char* kFooter =
    "`loopfleet-worker emit --help`: write the code of a job instead.\n"
    "`loopfleet-worker serve --help`: compile for the process that starts it (loopfleet.tensor).\n"
    "Settings: flags, then environment variables (LOOPFLEET_WORKER_ and the flag's name, such as\n"
    "LOOPFLEET_WORKER_RUN_LIMIT_MS), then the table [worker] of the file that --config names.\n"
    "Exit codes: 0 ended as asked, 2 usage, 70 failed while running, 78 bad configuration.";

std::unexpected<StartupExit> BadConfig(std::string text) {
  return std::unexpected(StartupExit{.exit_code = kExitBadConfig, .text = std::move(text)});
}

void AddOptions(CLI::App& app, WorkerConfig& config, RawOptions& wishes) {
  const CLI::Range limit_range(std::int64_t{1}, std::int64_t{600'000});
  app.add_option("--coordinator", config.coordinator, "The coordinator's endpoint for workers")
      ->capture_default_str();
  app.add_option("--device", wishes.device,
                 "What to run kernels on: cpu, or a CUDA device by its number, as nvidia-smi "
                 "counts, or in CUDA_VISIBLE_DEVICES if that is set: cuda:0")
      ->capture_default_str();
  app.add_option("--slots", config.slots, "How many kernels to time at once; only 1 for now")
      ->capture_default_str();
  app.add_option("--max-threads", config.max_threads,
                 "Threads that a kernel may use at most; 0 for one on each core")
      ->check(CLI::Range(std::uint32_t{0}, kMostThreads))
      ->capture_default_str();
  app.add_option("--labels", config.labels,
                 "What jobs may demand of their worker, as a,b; each worker also has device=..., "
                 "isa=... and host=... by itself")
      ->delimiter(',');
  app.add_option("--host", config.host,
                 "Name of this host, instead of the system's. In a container, the machine's: a "
                 "failure that several hosts agree on counts for all of their class")
      ->type_name("NAME");
  app.add_option("--http", config.http, "HOST:PORT of /metrics and /healthz; port 0 takes any")
      ->capture_default_str();
  app.add_option("--keys", config.keys,
                 "Directory with this worker's key and coordinator.key (loopfleet keygen); without "
                 "it only a coordinator on this machine can be reached");
  app.add_option("--llvm-programs", config.llvm_programs,
                 "Folder of bitcode for jobs of LLVM passes: debian-v0, as "
                 "deploy/llvm/build_debian.py leaves it, and what `loopfleet llvm add` put there")
      ->type_name("FOLDER");
  app.add_option("--compile-limit-ms", wishes.compile_limit_ms, "Longest compilation of a kernel")
      ->check(limit_range)
      ->capture_default_str();
  app.add_option("--run-limit-ms", wishes.run_limit_ms, "Longest single run of a kernel")
      ->check(limit_range)
      ->capture_default_str();
  app.add_option("--reference-clock-mhz", config.reference_clock_mhz,
                 "State times at this clock; 0: as measured at start, rounded to 100 MHz. Workers "
                 "whose results are to be shared must have the same")
      ->check(CLI::Range(0.0, 100'000.0))
      ->capture_default_str();
  app.add_option("--awake-ms", wishes.awake_ms,
                 "How long after each job the timing core is kept at work, so that it is warm and, "
                 "on a shared host, without a neighbour when the next one comes; 0: it may sleep")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{600'000}))
      ->capture_default_str();
  app.add_option("--require-sandbox", wishes.sandbox,
                 "full: refuse to run where system calls cannot be filtered; any: go without, and "
                 "run no LLVM passes there")
      ->capture_default_str();
  app.add_option("--log-level", wishes.log_level, "debug, info, warning or error")
      ->capture_default_str();
  app.add_option("--config", wishes.config_file, "TOML file with a table [worker]");
}

std::optional<std::string> WrongLabel(const std::vector<std::string>& labels) {
  if (labels.size() > kMostLabels) {
    return fmt::format("--labels: {} labels; at most {}", labels.size(), kMostLabels);
  }
  for (const std::string& label : labels) {
    if (!wire::IsUtf8(label)) {
      return fmt::format("--labels '{}': not UTF-8", wire::ToUtf8(label, kMostLabelBytes));
    }
    if (auto why = ValidateLabel(label)) return fmt::format("--labels '{}': {}", label, *why);
    if (label.size() > kMostLabelBytes) {
      return fmt::format("--labels '{}': {} bytes; at most {}", label, label.size(),
                         kMostLabelBytes);
    }
    if (wire::IsHardwareLabel(label)) {
      return fmt::format("--labels '{}': the hardware gives a worker its labels {}", label,
                         fmt::join(wire::kHardwareLabels, ", "));
    }
  }
  return std::nullopt;
}

std::optional<std::string> WrongPrograms(const std::string& folder) {
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return std::nullopt;
  return fmt::format(
      "--llvm-programs '{}': there is no such folder; deploy/llvm/build_debian.py FOLDER makes one",
      folder);
}

std::optional<std::string> WrongHost(const std::string& host) {
  if (host.empty()) return std::nullopt;
  if (!wire::IsUtf8(host) || host.size() > kMostLabelBytes) {
    return fmt::format("--host: not UTF-8, or longer than {} bytes", kMostLabelBytes);
  }
  if (const auto why = ValidateLabel(host)) return fmt::format("--host '{}': {}", host, *why);
  return std::nullopt;
}

// The number in "cuda:3"; nullopt for anything else.
std::optional<int> CudaDevice(std::string_view name) {
  constexpr std::string_view kPrefix = "cuda:";
  constexpr int kMostDevices = 64;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto number = NumberIn<int>(name.substr(kPrefix.size()));
  return number && *number >= 0 && *number < kMostDevices ? number : std::nullopt;
}

// An error text for the first option that this version does not support.
std::optional<std::string> UnsupportedOption(const WorkerConfig& config, const RawOptions& wishes) {
  if (wishes.device != "cpu" && !CudaDevice(wishes.device)) {
    return fmt::format("--device {}: there is no such device; use cpu, or cuda:0", wishes.device);
  }
  if (config.slots != 1) {
    return fmt::format(
        "--slots {}: kernels timed side by side would disturb each other; this version has 1 slot",
        config.slots);
  }
  return std::nullopt;
}

}  // namespace

std::expected<WorkerConfig, StartupExit> ParseWorkerOptions(int argc, const char* const* argv) {
  WorkerConfig config;
  RawOptions wishes;
  CLI::App app("The loopfleet worker: compiles, verifies and times kernels", "loopfleet-worker");
  app.footer(kFooter);
  AddOptions(app, config, wishes);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return std::unexpected(StartupExit{.exit_code = 0, .text = app.help()});
  } catch (const CLI::ParseError& error) {
    return std::unexpected(StartupExit{.exit_code = kExitUsage, .text = UsageText(app, error)});
  }
  std::optional<std::string> file;
  if (!wishes.config_file.empty()) file = wishes.config_file;
  constexpr std::string_view kPrefix = "LOOPFLEET_WORKER_";
  if (const Status applied =
          ApplySettings(app, {.table = "worker", .environment_prefix = kPrefix, .file = file});
      !applied) {
    return BadConfig(fmt::format("loopfleet-worker: {}\n", applied.error().message));
  }
  config.unknown_variables = UnknownVariables(app, kPrefix);
  if (const std::optional<std::string> problem = UnsupportedOption(config, wishes)) {
    return BadConfig(fmt::format("loopfleet-worker: {}\n", *problem));
  }
  if (const std::optional<std::string> wrong = WrongLabel(config.labels)) {
    return BadConfig(fmt::format("loopfleet-worker: {}\n", *wrong));
  }
  if (const std::optional<std::string> wrong = WrongHost(config.host)) {
    return BadConfig(fmt::format("loopfleet-worker: {}\n", *wrong));
  }
  if (const std::optional<std::string> wrong = WrongPrograms(config.llvm_programs)) {
    return BadConfig(fmt::format("loopfleet-worker: {}\n", *wrong));
  }
  const std::optional<log::Level> level = ValueNamed<log::Level>(wishes.log_level);
  if (!level) {
    return BadConfig(fmt::format(
        "loopfleet-worker: --log-level {}: use debug, info, warning or error\n", wishes.log_level));
  }
  if (wishes.sandbox != "any" && wishes.sandbox != "full") {
    return BadConfig(
        fmt::format("loopfleet-worker: --require-sandbox {}: use any or full\n", wishes.sandbox));
  }
  if (!config.keys.empty()) {
    constexpr std::array kRoles = {wire::Role::kWorker};
    if (const auto keys = wire::LoadPeerKeys(config.keys, kRoles); !keys) {
      return BadConfig(fmt::format("loopfleet-worker: --keys: {}\n", keys.error().message));
    }
  }
  config.cuda_device = CudaDevice(wishes.device);
  config.sandbox = wishes.sandbox == "full" ? SandboxDemand::kFull : SandboxDemand::kAny;
  config.log_level = *level;
  config.compile_limit = std::chrono::milliseconds(wishes.compile_limit_ms);
  config.run_limit = std::chrono::milliseconds(wishes.run_limit_ms);
  config.awake = std::chrono::milliseconds(wishes.awake_ms);
  return config;
}

}  // namespace loopfleet::worker
