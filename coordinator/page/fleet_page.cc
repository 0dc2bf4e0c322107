#include "coordinator/page/fleet_page.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/log.h"
#include "common/base/number_in.h"
#include "common/fleet/fleet_json.h"
#include "coordinator/page/job_view.h"
#include "monitoring/page_file.h"

namespace loopfleet::coordinator {
namespace {

using monitoring::SiteReply;

constexpr std::chrono::milliseconds kPeriod{500};
// Each update wakes a thread per watcher, which costs the queue time. More watchers than this get
// updates half as often.
constexpr std::size_t kFewWatchers = 16;
constexpr std::chrono::milliseconds kPeriodOfMany{1000};
// An update is sent this often even without changes, to show that the feed is live.
constexpr std::chrono::seconds kLongestSilence{5};
constexpr std::uint32_t kBatchesShown = 25;
constexpr std::uint32_t kOutcomesShown = 100;
// About 100 ms of reading if all are in memory.
constexpr std::uint32_t kOutcomesLookedAt = 20'000;
constexpr int kShareOfTime = 100;  // scanning outcomes takes at most 1/100 of the thread's time
constexpr std::chrono::minutes kLongestRest{1};
constexpr std::chrono::seconds kInterest{30};  // how long a request counts as a watcher
constexpr int kNice = 5;

SiteReply JsonReply(const Json& json) {
  return {.body = std::make_shared<const std::string>(Dump(json) + "\n")};
}

SiteReply Refusal(int status, std::string_view code, std::string message) {
  SiteReply reply = JsonReply({{"error", {{"code", code}, {"message", std::move(message)}}}});
  reply.status = status;
  if (status == 503) reply.retry_after_s = 5;
  return reply;
}

SiteReply NotFound(std::string message) { return Refusal(404, "NOT_FOUND", std::move(message)); }

SiteReply Unanswered(const Error& error) {
  if (error.kind == ErrorKind::kNotFound) return NotFound(error.message);
  return Refusal(503, error.kind == ErrorKind::kCorrupt ? "STORAGE_CORRUPT" : "BUSY",
                 error.message);
}

// The value of one parameter; nullopt if the query lacks it.
std::optional<std::string_view> Parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.substr(0, one.find('=')) != name) continue;
    return one.size() > name.size() ? one.substr(name.size() + 1) : std::string_view();
  }
  return std::nullopt;
}

std::optional<std::string_view> After(std::string_view path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return std::nullopt;
  return path.substr(prefix.size());
}

}  // namespace

Result<std::unique_ptr<FleetPage>> FleetPage::Start(Parts parts) {
  Readers readers;
  LF_TRY(readers.live, parts.store.OpenReader());
  LF_TRY(readers.questions, parts.store.OpenReader());
  return std::unique_ptr<FleetPage>(new FleetPage(std::move(parts), std::move(readers)));
}

FleetPage::FleetPage(Parts parts, Readers readers)
    : parts_(std::move(parts)), readers_(std::move(readers)), thread_([this] { Run(); }) {}

FleetPage::~FleetPage() {
  {
    const std::lock_guard lock(stop_mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  thread_.join();
}

void FleetPage::Run() {
  // Lowers the priority of this thread only. A refusal is harmless: it costs the queue a little
  // time.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  std::unique_lock lock(stop_mutex_);
  while (!stop_) {
    lock.unlock();
    Look();
    lock.lock();
    stop_changed_.wait_for(lock, kPeriod, [this] { return stop_; });
  }
}

void FleetPage::Look() {
  const auto snapshot = parts_.board.newest();
  if (snapshot == nullptr) return;
  const auto batches = readers_.live->ListBatches(kBatchesShown);
  if (!batches) {
    log::Warning("page.unreadable reason={}", batches.error().message);
    return;
  }
  const Instant now = parts_.clock.Now();
  // Count only outcomes on disk: undurable ones would not be found now, and not be looked for
  // later.
  const std::uint64_t durable = snapshot->tally.finished() - snapshot->undurable_outcomes;
  const bool has_news = !has_digest_ || durable != outcomes_seen_;
  const Nanos rest = std::min<Nanos>(outcomes_took_ * kShareOfTime, kLongestRest);
  if (has_news && IsWatched(now) && now - looked_at_outcomes_ >= rest) {
    outcomes_seen_ = durable;
    LookAtOutcomes();
  }
  Json overview;
  {
    const std::lock_guard lock(facts_mutex_);
    history_.Add(*snapshot, *batches);
    overview = OverviewJson({.snapshot = *snapshot,
                             .history = history_,
                             .batches = *batches,
                             .digest = digest_,
                             .health = parts_.health(),
                             .version = parts_.version});
  }
  Json lasting = overview;
  lasting.erase("at_ms");
  std::string text = Dump(lasting);
  auto bytes = std::make_shared<const std::string>(Dump(overview));
  const Nanos silence = now - sent_at_;
  const bool is_new = text != last_sent_ || silence >= kLongestSilence;
  // Half a period less, because the thread wakes a little early or late.
  const Nanos least = feed_.watchers() > kFewWatchers ? kPeriodOfMany - kPeriod / 2 : Nanos{0};
  if (is_new && silence >= least) {
    feed_.Publish(*bytes);
    last_sent_ = std::move(text);
    sent_at_ = now;
  }
  const std::lock_guard lock(facts_mutex_);
  overview_ = std::move(bytes);
}

bool FleetPage::IsWatched(Instant now) const {
  return feed_.watchers() > 0 || now - asked_at_.load() < kInterest;
}

void FleetPage::LookAtOutcomes() {
  const Instant begin = parts_.clock.Now();
  const auto newest = readers_.live->NewestOutcomes(kOutcomesLookedAt);
  if (newest) {
    OutcomeDigest digest = Digest(*newest);
    const std::lock_guard lock(facts_mutex_);
    digest_ = std::move(digest);
    has_digest_ = true;
  } else {
    log::Warning("page.unreadable reason={}", newest.error().message);
  }
  looked_at_outcomes_ = parts_.clock.Now();
  outcomes_took_ = looked_at_outcomes_ - begin;
}

bool FleetPage::Has(std::string_view path) const {
  return path.starts_with("/api/") || path == "/" ||
         std::ranges::find(monitoring::PageFiles(), path, &monitoring::PageFile::path) !=
             monitoring::PageFiles().end();
}

SiteReply FleetPage::Answer(const monitoring::SiteRequest& request) {
  if (request.path.starts_with("/api/")) return Api(request);
  const std::string_view path = request.path == "/" ? "/index.html" : request.path;
  for (const monitoring::PageFile& file : monitoring::PageFiles()) {
    if (file.path != path) continue;
    const bool packed = request.accepts_gzip;
    return {.content_type = file.content_type,
            .body = std::make_shared<const std::string>(packed ? file.gzip : file.plain),
            .encoding = packed ? monitoring::Encoding::kGzip : monitoring::Encoding::kIdentity};
  }
  return {.status = 404,
          .content_type = "text/plain; charset=utf-8",
          .body = std::make_shared<const std::string>(
              "this coordinator was built without the page (LOOPFLEET_PAGE=OFF); its facts are at "
              "/api/overview\n")};
}

SiteReply FleetPage::Api(const monitoring::SiteRequest& request) {
  asked_at_ = parts_.clock.Now();
  const std::string_view path = request.path;
  if (path == "/api/overview") {
    const std::lock_guard lock(facts_mutex_);
    if (overview_ == nullptr) return Refusal(503, "BUSY", "the coordinator has only just started");
    return {.body = overview_};
  }
  if (path == "/api/live") {
    auto stream = feed_.Watch();
    if (stream == nullptr) {
      return Refusal(
          503, "BUSY",
          fmt::format("{} pages are watched live already (the limit)", feed_.max_watchers()));
    }
    return {.content_type = "text/event-stream", .stream = std::move(stream)};
  }
  if (path == "/api/workers") return Workers();
  if (const auto id = After(path, "/api/worker/")) return WorkerOf(*id);
  if (const auto id = After(path, "/api/batch/")) return BatchOf(*id, request.query);
  if (const auto id = After(path, "/api/job/")) return JobOf(*id);
  return NotFound(fmt::format(
      "there is no {}; there are /api/overview, /api/live, /api/workers, /api/worker/ID, "
      "/api/batch/ID and /api/job/BATCH.INDEX",
      path));
}

SiteReply FleetPage::Workers() const {
  const auto snapshot = parts_.board.newest();
  if (snapshot == nullptr) return Refusal(503, "BUSY", "the coordinator has only just started");
  Json workers = Json::array();
  for (const wire::WorkerInfo& worker : snapshot->fleet.workers) {
    workers.push_back(WorkerJson(worker));
  }
  return JsonReply(workers);
}

SiteReply FleetPage::WorkerOf(std::string_view id) const {
  const auto snapshot = parts_.board.newest();
  if (snapshot == nullptr) return Refusal(503, "BUSY", "the coordinator has only just started");
  const auto uuid = Uuid::Parse(id);
  const auto found =
      uuid ? std::ranges::find(snapshot->fleet.workers, *uuid, &wire::WorkerInfo::worker)
           : snapshot->fleet.workers.end();
  if (found == snapshot->fleet.workers.end())
    return NotFound(fmt::format("there is no worker {}", id));
  Json json = WorkerJson(*found);
  const std::lock_guard lock(facts_mutex_);
  json["canaries"] = Json::array();
  for (const FleetHistory::Canary& canary : history_.CanariesOf(*uuid)) {
    json["canaries"].push_back({{"at_ms", EpochMs(canary.at)}, {"ratio", canary.ratio}});
  }
  const auto noise = digest_.by_worker.find(found->name);
  json["noise"] = noise == digest_.by_worker.end() ? Json(nullptr) : *noise;
  json["observed"] = digest_.observed.value(found->name, Json::object());
  return JsonReply(json);
}

SiteReply FleetPage::BatchOf(std::string_view id, std::string_view query) {
  const auto number = NumberIn<std::uint64_t>(id);
  if (!number) return NotFound(fmt::format("there is no batch '{}': give its number", id));
  const std::lock_guard asking(asking_);
  const auto batch = readers_.questions->FindBatch(BatchId{*number});
  if (!batch) return Unanswered(batch.error());
  if (!*batch) {
    const auto was_pruned = readers_.questions->WasPruned(BatchId{*number});
    if (!was_pruned) return Unanswered(was_pruned.error());
    return NotFound(*was_pruned ? fmt::format("batch {} was pruned", id)
                                : fmt::format("there is no batch {}", id));
  }
  std::uint64_t after = 0;
  if (const auto text = Parameter(query, "after")) {
    const auto value = NumberIn<std::uint64_t>(*text);
    if (!value) return Refusal(400, "MALFORMED", "?after= takes the sequence of an outcome");
    after = *value;
  } else if (Parameter(query, "newest") && (*batch)->finished > kOutcomesShown) {
    after = (*batch)->finished - kOutcomesShown;
  }
  const auto outcomes = readers_.questions->ReadOutcomes(
      BatchId{*number}, after,
      {.max_rows = kOutcomesShown, .observed = storage::ObservedValues::kLeftOut});
  if (!outcomes) return Unanswered(outcomes.error());
  Json json;
  {
    const std::lock_guard lock(facts_mutex_);
    json = BatchViewJson(**batch, history_);
  }
  json["outcomes"] = Json::array();
  for (const Outcome& outcome : *outcomes) json["outcomes"].push_back(OutcomeRowJson(outcome));
  return JsonReply(json);
}

SiteReply FleetPage::JobOf(std::string_view text) {
  const auto id = ParseJobId(text);
  if (!id) {
    return NotFound(fmt::format("'{}' is not a job: give BATCH.INDEX, for example 12.3", text));
  }
  const std::lock_guard asking(asking_);
  const auto stored = readers_.questions->ReadJob(*id);
  if (!stored) return Unanswered(stored.error());
  if (!*stored) return NotFound(fmt::format("there is no job {}", *id));
  const auto profile = FindProfile(**stored, *readers_.questions);
  return JsonReply(JobViewJson(*id, **stored, profile ? &*profile : nullptr));
}

}  // namespace loopfleet::coordinator
