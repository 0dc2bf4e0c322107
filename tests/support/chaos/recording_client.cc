// loopfleet-recording-client: a client on the product's own library that records all its requests
// and answers, for tests/support/chaos/history.py to check. Each line of its file is a JSON object
// with "op":
//   submit    before a message of jobs is sent: request id, first job's tag
//   accepted  the jobs are on disk: request id, batch, first index, jobs
//   refused   the call ended without that: request id, code or reason
//   outcomes  a page: [sequence, index, tag, "ok" or the failure's code, is_right, digest]. The
//             digest covers the whole outcome. is_right: what loopfleet-stub-fleet answers to the
//             job, or with --measured a plausible answer of a real worker
//   finished  the batch is finished, with this many jobs
// It submits until standard input ends (or SIGTERM) and then waits until all its jobs have
// finished; with --audit it reads every batch of every client instead.

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "common/base/check.h"
#include "common/base/random.h"
#include "common/job/job_spec.h"
#include "common/job/loop_schedule.h"
#include "common/looptree/tree/key.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::client {
namespace {

using nlohmann::json;

volatile std::sig_atomic_t stop_requested = 0;

struct Settings {
  std::string coordinator;
  std::string history;
  std::string name = "client";
  std::uint64_t seed = 1;
  std::uint32_t jobs = 40;    // in each batch
  std::uint64_t batches = 0;  // 0: until stopped
  double patience_s = 120;    // tolerated silence of the coordinator
  bool audit = false;
  bool measured = false;     // by real workers
  std::uint32_t sizes = 40;  // largest size of each dimension
};

bool StandardInputEnded() {
  pollfd item{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  char ignored[64];
  return ::poll(&item, 1, 0) > 0 && ::read(STDIN_FILENO, ignored, sizeof ignored) <= 0;
}

class RecordingClient {
 public:
  RecordingClient(const Settings& settings, std::FILE* history)
      : settings_(settings),
        history_(history),
        random_(settings.seed),
        client_(Connect(settings)) {}

  void Run() {
    for (std::uint64_t number = 0; settings_.batches == 0 || number < settings_.batches; ++number) {
      if (stop_requested != 0 || (settings_.batches == 0 && StandardInputEnded())) break;
      const BatchId batch = SubmitBatch(number);
      if (batch.value == 0) continue;
      Follow(batch);
      if (random_.Below(4) == 0) Follow(batch);  // again: nothing may have changed
    }
  }

  void Audit() {
    const auto newest = Must(client_.ShowBatch(BatchId{}), "show");
    if (!newest) return;
    for (std::uint64_t id = 1; id <= newest->batch.value; ++id) {
      if (Must(client_.ShowBatch(BatchId{id}), "show")) Follow(BatchId{id});
    }
  }

 private:
  static Client Connect(const Settings& settings) {
    const Nanos patience =
        std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(settings.patience_s));
    auto client = Client::Connect({.address = settings.coordinator,
                                   .program = "recording",
                                   .connect_limit = patience,
                                   .silence_limit = patience,
                                   .resend_after = std::chrono::milliseconds(200),
                                   .busy_limit = patience});
    LF_CHECK(client.has_value(), "{}", client.error().message);
    return *std::move(client);
  }

  // Writes and flushes one line, so that a killed client leaves whole lines.
  void Write(const json& line) {
    const std::string text = line.dump() + "\n";
    std::fwrite(text.data(), 1, text.size(), history_);
    std::fflush(history_);
  }

  // nullopt: refused. Any other error ends the program with a failure status.
  template <class T>
  std::optional<T> Must(Answer<T> answer, const char* what) {
    if (answer) return *std::move(answer);
    Write({{"op", "no_answer"}, {"what", what}, {"why", answer.error().message}});
    LF_CHECK(answer.error().refusal.has_value(), "{}: {}", what, answer.error().message);
    return std::nullopt;
  }

  std::string TagOf(std::uint64_t batch, std::uint32_t index) const {
    return fmt::format("\"{}.{}.{}\"", settings_.name, batch, index);
  }

  JobSpec RandomJob(std::uint64_t batch, std::uint32_t index) {
    JobSpec spec{.source = looptree::BenchmarkUri{fmt::format(
                     "benchmark://mm-v0/mm{}_{}_{}", 1 + random_.Below(settings_.sizes),
                     1 + random_.Below(settings_.sizes), 1 + random_.Below(settings_.sizes))},
                 .tag = TagOf(batch, index)};
    if (random_.Below(5) == 0) spec.freshness = Freshness::kMeasureAgain;
    return spec;
  }

  // nullopt: refused.
  std::optional<wire::Accepted> Send(const wire::SubmitJobs& message) {
    const std::string id = message.request_id.ToString();
    Write({{"op", "submit"},
           {"id", id},
           {"jobs", message.jobs.size()},
           {"tag", message.jobs.empty() ? "" : message.jobs.front().tag}});
    const auto accepted = client_.SubmitMessage(message);
    if (!accepted) {
      Write({{"op", "refused"}, {"id", id}, {"why", accepted.error().message}});
      LF_CHECK(accepted.error().refusal.has_value(), "submit: {}", accepted.error().message);
      return std::nullopt;
    }
    Write({{"op", "accepted"},
           {"id", id},
           {"batch", accepted->batch.value},
           {"first", accepted->first_index},
           {"jobs", accepted->job_count}});
    return *accepted;
  }

  // Submits in one message or two; sometimes sends each twice under the same request id.
  BatchId SubmitBatch(std::uint64_t number) {
    const bool in_two = random_.Below(3) == 0;
    const bool twice = random_.Below(4) == 0;
    BatchId batch;
    std::uint32_t next = 0;
    for (int part = 0; part < (in_two ? 2 : 1); ++part) {
      const bool last = part == (in_two ? 1 : 0);
      const std::uint32_t until = last ? settings_.jobs : settings_.jobs / 2;
      wire::SubmitJobs message{
          .request_id = Uuid::Random(),
          .end = last ? wire::BatchEnd::kComplete : wire::BatchEnd::kMoreFollows};
      if (part == 1) message.append_to = batch;
      for (; next < until; ++next) message.jobs.push_back(RandomJob(number, next));
      for (int time = 0; time < (twice ? 2 : 1); ++time) {
        const auto accepted = Send(message);
        if (!accepted) return batch;
        batch = accepted->batch;
      }
    }
    return batch;
  }

  // Reads page by page from the first outcome until every job has one.
  void Follow(BatchId batch) {
    std::uint64_t after = 0;
    while (true) {
      const auto page = Must(client_.Fetch(batch, after, std::chrono::milliseconds(500)), "fetch");
      if (!page) return;
      json rows = json::array();
      for (const Outcome& outcome : page->outcomes) rows.push_back(RowOf(outcome));
      if (!rows.empty()) {
        Write({{"op", "outcomes"}, {"batch", batch.value}, {"after", after}, {"rows", rows}});
      }
      after += page->outcomes.size();
      if (after == page->batch.job_count) {
        Write({{"op", "finished"},
               {"batch", batch.value},
               {"open", page->batch.state == wire::BatchState::kOpen},
               {"jobs", page->batch.job_count}});
        return;
      }
    }
  }

  json RowOf(const Outcome& outcome) const {
    const wire::CoordinatorReply page{
        .message = wire::OutcomePage{.batch = {.batch = outcome.job.batch}, .outcomes = {outcome}}};
    return {outcome.sequence, outcome.job.index,
            outcome.tag,      OutcomeLabel(outcome.evaluation),
            IsRight(outcome), std::hash<std::string>{}(wire::Encode(page))};
  }

  // Whether it is a result of this job.
  bool IsRight(const Outcome& outcome) const {
    const Evaluation& evaluation = outcome.evaluation;
    if (!evaluation.ok()) return false;
    const double elapsed_ns = evaluation.measurement().elapsed_ns;
    // The stub workers' time of a job is its work.
    if (!settings_.measured) return elapsed_ns == static_cast<double>(evaluation.flop_count);
    const auto replayed = ReplayJob({.source = outcome.benchmark, .actions = outcome.actions});
    return replayed && evaluation.subject == looptree::KeyOf(replayed->tree) &&
           evaluation.flop_count == looptree::FlopCount(replayed->tree.program()) && elapsed_ns > 0;
  }

  const Settings& settings_;
  std::FILE* history_;
  SplitMix64 random_;
  Client client_;
};

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("A client that writes down what it sees");
  app.add_option("--coordinator", settings.coordinator)->required();
  app.add_option("--history", settings.history)->required();
  app.add_option("--name", settings.name);
  app.add_option("--seed", settings.seed);
  app.add_option("--jobs", settings.jobs);
  app.add_option("--batches", settings.batches);
  app.add_option("--patience-s", settings.patience_s);
  app.add_flag("--audit", settings.audit);
  app.add_flag("--measured", settings.measured);
  app.add_option("--sizes", settings.sizes);
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGTERM, [](int) { stop_requested = 1; });
  std::FILE* history = std::fopen(settings.history.c_str(), "ae");
  LF_CHECK(history != nullptr, "cannot write {}", settings.history);
  RecordingClient client(settings, history);
  if (settings.audit) {
    client.Audit();
  } else {
    client.Run();
  }
  std::fclose(history);
  return 0;
}

}  // namespace
}  // namespace loopfleet::client

int main(int argc, char** argv) { return loopfleet::client::Main(argc, argv); }
