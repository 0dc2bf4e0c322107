// loopfleet-mirror: copies the outcomes of a coordinator's database into PostgreSQL until it is
// told to stop. The coordinator starts it (--results); run by hand with --once, it copies what is
// there.
//
// Prints its status as a JSON object a line: at most one a second, and one at the end.

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/base/settings.h"
#include "common/base/signal_watcher.h"
#include "common/fleet/mirror_model.h"
#include "common/job/outcome_json.h"
#include "coordinator/mirror/mirror.h"
#include "storage/open.h"

namespace loopfleet::coordinator {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitBadConfig = 78;  // EX_CONFIG

struct MirrorOptions {
  std::string database;
  std::string results;
  std::uint32_t rows = Mirror::Options{}.most_rows;
  bool once = false;
};

void AddOptions(CLI::App& app, MirrorOptions& options) {
  app.add_option("--db", options.database, "The coordinator's database file")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--results", options.results,
                 "The PostgreSQL database, as libpq reads it: postgresql://user@host/database. On "
                 "the command line everyone on this machine can read it: give passwords in "
                 "~/.pgpass, or all of it in the environment")
      ->envname("LOOPFLEET_RESULTS")
      ->required();
  app.add_option("--rows", options.rows, "Outcomes of one transaction, at most")
      ->check(CLI::Range(1U, 100'000U))
      ->capture_default_str();
  app.add_flag("--once", options.once, "Copy what is there, and end");
}

// Prints a status, but not more than one a second while only its figures change.
class StatusLines {
 public:
  explicit StatusLines(const Clock& clock) : clock_(clock) {}
  void Show(const MirrorModel& status) {
    newest_ = status;
    const Instant now = clock_.Now();
    if (status.trouble == printed_.trouble && now < due_) return;
    due_ = now + std::chrono::seconds(1);
    Print();
  }
  void Print() {
    printed_ = newest_;
    fmt::print("{}\n", Dump(MirrorJson(newest_)));
    std::fflush(stdout);
  }

 private:
  const Clock& clock_;
  Instant due_{};
  MirrorModel newest_;
  MirrorModel printed_;
};

Status Run(const MirrorOptions& options) {
  LF_TRY(const auto signals, SignalWatcher::Start());  // before any other thread
  const SystemClock clock;
  std::atomic<bool> stop{false};
  signals->Watch([&] { stop = true; });
  LF_TRY(const auto reader, storage::OpenReader(options.database));
  LF_TRY(const Uuid incarnation, reader->Incarnation());
  LF_TRY(const BatchId first_own_batch, reader->FirstOwnBatch());
  StatusLines lines(clock);
  Mirror mirror(
      *reader, clock,
      {.archive = {.url = options.results,
                   .incarnation = incarnation,
                   .first_own_batch = first_own_batch,
                   .name = fmt::format("{}:{}", HostName(),
                                       std::filesystem::absolute(options.database).native())},
       .most_rows = options.rows,
       .once = options.once},
      [&](const MirrorModel& status) { lines.Show(status); });
  const Status ran = mirror.Run(stop);
  if (ran) lines.Print();
  signals->Forget();
  return ran;
}

int Main(int argc, const char* const* argv) {
  MirrorOptions options;
  CLI::App app("Copies the outcomes of a loopfleet coordinator's database into PostgreSQL",
               "loopfleet-mirror");
  app.footer(
      "Exit codes: 0 ended as asked, 1 failed while running, 2 usage, 78 PostgreSQL refuses: no "
      "permission, or a schema of a newer version.");
  AddOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}", UsageText(app, error));
    return kExitUsage;
  }
  log::Init("loopfleet-mirror", log::Level::kInfo);
  const Status ran = Run(options);
  if (ran) return 0;
  fmt::print(stderr, "loopfleet-mirror: {}\n", ran.error().message);
  return ran.error().kind == ErrorKind::kInvalid ? kExitBadConfig : kExitFailed;
}

}  // namespace
}  // namespace loopfleet::coordinator

int main(int argc, char** argv) { return loopfleet::coordinator::Main(argc, argv); }
