// loopfleet-coordinator: builds every part, prints when it is ready, and runs until it is told to
// stop.

#include <fmt/format.h>
#ifdef LOOPFLEET_MIMALLOC
#include <mimalloc.h>
#else
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "common/base/failpoint.h"
#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/service_manager.h"
#include "common/base/signal_watcher.h"
#include "common/fleet/fleet_json.h"
#include "common/job/outcome_json.h"
#include "coordinator/coordinator_options.h"
#include "coordinator/memory_budget.h"
#include "coordinator/page/fleet_page.h"
#include "coordinator/shell/blob_thread.h"
#include "coordinator/shell/event_loop.h"
#include "coordinator/shell/key_watcher.h"
#include "coordinator/shell/postgres/mirror_process.h"
#include "coordinator/shell/postgres/shared_answers.h"
#include "coordinator/shell/postgres/shared_lookups.h"
#include "monitoring/http_server.h"
#include "storage/open.h"

namespace loopfleet::coordinator {
namespace {

#ifndef LOOPFLEET_VERSION
#error "the build says which version this is"
#endif

std::string NameOfThisProcess() {
  const std::string host = HostName();
  return fmt::format("{}{}pid {}", host, host.empty() ? "" : " ", ::getpid());
}

// Each live page holds a server thread (LiveFeed::Options::max_watchers). 64 more serve the page's
// single queries, and 64 more everything else, as in a daemon without a page.
constexpr int kSiteThreads = 128 + 64;
constexpr int kHttpThreads = kSiteThreads + 64;

// The host names accepted in requests for the page, besides addresses and localhost.
std::vector<std::string> PageNames(const CoordinatorOptions& options) {
  std::vector<std::string> names = options.page_hosts;
  if (std::string host = HostName(); !host.empty()) names.push_back(std::move(host));
  names.push_back(options.http.substr(0, options.http.rfind(':')));
  return names;
}

// Each connection needs a descriptor, and the listening sockets are closed to new ones while nine
// tenths are in use (common/wire/transport/connection_limiter.h): so this limits connections.
void LimitDescriptors(std::uint64_t connections) {
  constexpr std::uint64_t kOthers = 256;  // of the page, the database and the log
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, (connections + kOthers) / 9 * 10);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    log::Warning("coordinator.descriptors limit={} could not be set", limit.rlim_cur);
  }
}

// A program that was installed with this one.
Result<std::filesystem::path> ProgramBeside(const char* name) {
  std::error_code unreadable;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  const auto program = self.parent_path() / name;
  if (!unreadable && std::filesystem::exists(program, unreadable)) return program;
  return Fail(ErrorKind::kInvalid, fmt::format("--results needs the program {}", program.native()));
}

// Exports the size of the database and the free space on its disk. A figure that cannot be read
// keeps its last value.
void ShowSpace(const std::filesystem::path& database, monitoring::CoordinatorMetrics& metrics) {
  monitoring::CoordinatorMetrics::DatabaseSpace space;
  std::error_code unreadable;
  const auto disk = std::filesystem::space(database, unreadable);
  if (unreadable) return;
  space.disk_free_bytes = disk.available;
  space.disk_size_bytes = disk.capacity;
  for (const char* part : {"", "-wal"}) {
    const auto bytes = std::filesystem::file_size(database.native() + part, unreadable);
    if (!unreadable) space.database_bytes += bytes;
  }
  metrics.SetDatabaseSpace(space);
}

Status Serve(const CoordinatorOptions& options) {
  LF_TRY(const auto signals, SignalWatcher::Start());  // before any other thread
  const SystemClock clock;

  LF_TRY(const auto store, storage::OpenStore(options.database));
  LF_TRY(const auto reader, store->OpenReader());
  LF_TRY(storage::Recovery recovery, store->RecoverBatches());

  monitoring::Registry registry;
  const monitoring::BuildInfo build{.component = "coordinator", .version = LOOPFLEET_VERSION};
  monitoring::RegisterBuildInfo(registry, build);
  monitoring::RegisterProcess(registry);
  monitoring::CoordinatorMetrics metrics(registry, AllLabels());
  registry.OnScrape([&] { ShowSpace(options.database, metrics); });
  SnapshotBoard board;
  Health health(clock, board);
  registry.OnScrape([&] {
    const auto snapshot = board.newest();
    if (snapshot != nullptr) ShowFleet(snapshot->fleet, health.Now(), metrics);
  });

  const MemoryBudget memory(options.memory_bytes);
  LimitDescriptors(memory.connections);  // before sockets

  wire::Context context;
  std::unique_ptr<KeyWatcher> key_watcher;  // before the sockets that it guards
  if (!options.keys.empty()) {
    LF_TRY(key_watcher, KeyWatcher::Start(context, options.keys, clock.Now()));
  }
  const auto bind = [&](const std::string& endpoint, wire::Door door) {
    return wire::Router::Bind(
        context, endpoint,
        {.max_unread_bytes = memory.unread,
         .max_unreceived_messages = memory.unreceived_messages,
         .authenticator = key_watcher ? &key_watcher->authenticator() : nullptr,
         .door = door});
  };
  LF_TRY(auto clients, bind(options.listen_clients, wire::Door::kClients));
  LF_TRY(auto workers, bind(options.listen_workers, wire::Door::kWorkers));
  wire::Wakeup wakeup;

  QuestionHashKey hash_key{};
  FillWithOsRandomness(hash_key);
  Core core({.limits = options.limits, .name = NameOfThisProcess(), .hash_key = hash_key});
  FleetStatus status(clock, {.version = LOOPFLEET_VERSION});
  Observer observer(metrics, status, clock);
  StorageQueries answers(*reader);
  ReplayMemory replayed;
  JobResolver resolver(*reader, replayed, metrics, clock);
  LF_TRY(BlobFolder uploads,
         BlobFolder::Open(options.uploads, {.bytes = options.uploads_bytes,
                                            .bytes_per_client = options.uploads_bytes_per_client,
                                            .observed_bytes = options.observed_bytes}));
  BlobThread blobs(std::move(uploads), metrics, wakeup);
  std::unique_ptr<MirrorProcess> mirror;  // none unless asked for, like what follows
  std::unique_ptr<SharedLookups> lookups;
  std::unique_ptr<SharedAnswers> shared;
  if (!options.results.empty()) {
    LF_TRY(const auto program, ProgramBeside("loopfleet-mirror"));
    mirror = std::make_unique<MirrorProcess>(
        MirrorProcess::Options{
            .program = program, .database = options.database, .results = options.results},
        clock);
    lookups = std::make_unique<SharedLookups>(
        SharedLookups::Options{.results = options.results, .incarnation = store->incarnation()},
        clock, wakeup);
    shared = std::make_unique<SharedAnswers>(*lookups, metrics, clock);
  }
  StorageThread storage(*store, metrics, clock, wakeup,
                        {.samples = std::chrono::days(options.keep_samples_days),
                         .batches = std::chrono::days(options.keep_batches_days),
                         .may_delete_batches = [&] { return !mirror || mirror->has_caught_up(); }});
  EffectRunner runner(clients, workers, storage, blobs, answers, observer);
  EventLoop loop({.core = core,
                  .runner = runner,
                  .resolver = resolver,
                  .reader = *reader,
                  .storage = storage,
                  .blobs = blobs,
                  .clients = clients,
                  .workers = workers,
                  .wakeup = wakeup,
                  .clock = clock,
                  .metrics = metrics,
                  .observer = observer,
                  .health = health,
                  .board = board,
                  .max_request_bytes = memory.requests,
                  .max_undurable_job_bytes = memory.undurable_jobs,
                  .key_watcher = key_watcher.get(),
                  .mirror = mirror.get(),
                  .shared = shared.get()});
  loop.Recover(std::move(recovery));
  LF_TRY(const auto page, FleetPage::Start({.board = board,
                                            .clock = clock,
                                            .store = *store,
                                            .health = [&] { return health.Now(); },
                                            .version = LOOPFLEET_VERSION}));
  const auto attention = [&] { return Dump(AttentionJson(health.Now().attention)); };
  LF_TRY(const auto http,
         monitoring::HttpServer::Start({.listen = options.http,
                                        .build = build,
                                        .alive = [&] { return health.StuckReason(); },
                                        .ready = [&] { return health.NotReadyReason(); },
                                        .attention = attention,
                                        .threads = kHttpThreads,
                                        .site_threads = kSiteThreads,
                                        .site = page.get(),
                                        .audience = options.page_audience,
                                        .host_names = PageNames(options)},
                                       registry, [&] { return health.Reasons(); }));
  status.SetHttp(http->address());
  std::unique_ptr<monitoring::HttpServer> metrics_server;  // none unless asked for
  if (!options.metrics.empty()) {
    LF_TRY(metrics_server,
           monitoring::HttpServer::Start({.listen = options.metrics,
                                          .build = build,
                                          .alive = [&] { return health.StuckReason(); },
                                          .ready = [&] { return health.NotReadyReason(); },
                                          .attention = attention},
                                         registry, [&] { return health.Reasons(); }));
  }
  const auto service = ServiceManager::FromEnvironment([&] { return health.IsTurning(); });
  signals->Watch([&] {
    service->Stopping();
    loop.RequestStop();
  });

  Json ready = {
      {"ready", true},           {"clients", clients.endpoint()},   {"workers", workers.endpoint()},
      {"http", http->address()}, {"db", options.database.native()}, {"pid", ::getpid()}};
  if (metrics_server) ready["metrics"] = metrics_server->address();
  if (key_watcher) ready["key"] = key_watcher->public_key().ToText();
  fmt::print("{}\n", Dump(ready));
  std::fflush(stdout);
  service->Ready();
  const Status ran = loop.Run();
  signals->Forget();
  return ran;
}

// Messages of up to 1 MiB and thousands of small allocations come and go all the time. By default
// malloc soon returns such memory to the kernel, which has to zero it for the next use: measured,
// up to a third of the processor time of a busy coordinator.
void KeepFreedMemory() {
#ifdef LOOPFLEET_MIMALLOC
  constexpr long kKeptMs = 10'000;
  ::mi_option_set(mi_option_decommit_delay, kKeptMs);
  ::mi_option_set(mi_option_segment_decommit_delay, kKeptMs);
#else
  constexpr int kKeptBytes = 256 << 20;
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value allowed
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
#endif
}

int Main(int argc, const char* const* argv) {
  KeepFreedMemory();
  auto options = ParseCoordinatorOptions(argc, argv);
  if (!options) {
    fmt::print(options.error().exit_code == 0 ? stdout : stderr, "{}", options.error().text);
    return options.error().exit_code;
  }
  LF_FAILPOINT_SETTING("LOOPFLEET_REATTACH_GRACE_MS", options->limits.reattach_grace);
  log::Init("loopfleet-coordinator", options->log_level);
  for (const std::string& text : options->unknown_variables)
    log::Warning("settings.unknown {}", text);
  if (const Status served = Serve(*options); !served) {
    const ErrorKind kind = served.error().kind;
    fmt::print(stderr, "loopfleet-coordinator: {}\n", served.error().message);
    if (kind == ErrorKind::kCorrupt) {
      fmt::print(stderr,
                 "loopfleet-coordinator: `loopfleet db check {0}` says what is damaged; "
                 "`loopfleet db repair {0}` rebuilds the outcomes; otherwise restore a snapshot\n",
                 options->database.native());
    }
    // Neither passes by starting again.
    const bool stays = kind == ErrorKind::kInvalid || kind == ErrorKind::kCorrupt;
    return stays ? kExitBadConfig : kExitFailed;
  }
  return 0;
}

}  // namespace
}  // namespace loopfleet::coordinator

int main(int argc, char** argv) { return loopfleet::coordinator::Main(argc, argv); }
