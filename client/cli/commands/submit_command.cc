#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <system_error>

#include "client/batch_writer.h"
#include "client/cli/command_line.h"
#include "client/cli/commands/follow.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/confirmation_text.h"
#include "client/cli/text/line_reader.h"
#include "client/cli/text/outcome_text.h"
#include "client/confirmation.h"
#include "client/job_line.h"
#include "client/outcome_json.h"
#include "common/base/counted.h"

namespace loopfleet::client {
namespace {

constexpr Nanos kGoodbyeLimit = std::chrono::seconds(2);

struct SubmitFlags {
  std::string file;
  bool wait = false;
  bool jsonl = false;
  bool json = false;
  std::size_t confirm = 0;  // the best of each benchmark to measure again
};

// Which lines became jobs of the batch, and how many did not.
struct Submission {
  BatchId batch;
  std::vector<std::uint64_t> line_of_job;  // index among the non-blank lines, by job
  std::uint64_t bad_lines = 0;
  std::uint64_t lines = 0;  // non-blank lines
};

void Reject(const SubmitFlags& flags, const RejectedJob& rejected, const LineReader::Line& line,
            Submission& submission) {
  ++submission.bad_lines;
  fmt::print(stderr, "loopfleet: {}:{}: {}\n", flags.file, line.number,
             FailureText(rejected.failure));
  if (!flags.jsonl) return;
  Json json = OutcomeJson(rejected);
  json["index"] = submission.lines;
  json["line"] = line.number;
  fmt::print("{}\n", Dump(json));
  std::fflush(stdout);
}

// Sends jobs while it reads to the end. Accepted jobs remain accepted if a later part fails.
Answer<void> SubmitLines(const SubmitFlags& flags, std::istream& stream, Client& client,
                         Submission& submission) {
  BatchWriter writer(client);
  LineReader reader(stream, kMaxLineBytes);
  const auto send = [&]() -> Answer<void> {
    while (auto line = reader.Next()) {
      if (line->blank) continue;
      auto spec = ParseJobLine(line->text);
      if (spec) {
        LF_TRY_VOID(writer.Add(*std::move(spec)));
        submission.line_of_job.push_back(submission.lines);
      } else {
        Reject(flags, spec.error(), *line, submission);
      }
      ++submission.lines;
    }
    if (!reader.failure().empty()) {
      return std::unexpected(
          CallError{.kind = ErrorKind::kInvalid,
                    .message = fmt::format("cannot read '{}': {}", flags.file, reader.failure())});
    }
    return {};
  };
  const auto sent = send();
  submission.batch = writer.batch();
  if (!sent) {
    // The accepted jobs will run: close the batch, so that it can finish.
    client.AllowFinalCalls(kGoodbyeLimit);
    if (submission.batch) static_cast<void>(writer.Finish());
    return sent;
  }
  // A file without a valid line creates no batch.
  if (submission.line_of_job.empty()) return {};
  const auto finished = writer.Finish();
  submission.batch = writer.batch();
  return finished;
}

int ReportPartial(const CallError& error, const Submission& submission) {
  const int code = Report(error);
  if (submission.batch) {
    fmt::print(
        stderr,
        "batch {} has the jobs that were sent before and runs them: `loopfleet batch wait {}` "
        "comes back to it, `loopfleet batch cancel {}` ends it\n",
        submission.batch, submission.batch, submission.batch);
  }
  return code;
}

// Measures the winners again and prints what that shows; exit code as for a batch.
int ConfirmWinners(const SubmitFlags& flags, Client& client, std::vector<Winner> best,
                   std::vector<Confirmed>& confirmed) {
  if (best.empty()) {
    fmt::print(stderr, "nothing to confirm\n");
    return kExitOk;
  }
  fmt::print(stderr, "measuring the best again, {} times each: {}\n", kConfirmingRepeats,
             best.size());
  auto confirmation = Confirm(client, std::move(best), kConfirmingRepeats);
  if (!confirmation) return Report(confirmation.error());
  confirmed = std::move(confirmation->winners);
  if (!flags.json) fmt::print(flags.jsonl ? stderr : stdout, "{}", ConfirmedText(confirmed));
  if (const auto bias = MedianBias(confirmed)) {
    fmt::print(stderr, "batch {}: the first figures were too good by {:.2f} % (median)\n",
               confirmation->batch, 100 * *bias);
  }
  const bool has_all = std::ranges::none_of(
      confirmed, [](const Confirmed& one) { return one.remeasured_ns().empty(); });
  return has_all ? kExitOk : kExitFailed;
}

int RunSubmit(const SubmitFlags& flags, const CommandRun& run) {
  std::ifstream opened;
  if (flags.file != "-") {
    std::error_code ignored;
    const bool is_directory = std::filesystem::is_directory(flags.file, ignored);
    if (!is_directory) opened.open(flags.file);
    if (is_directory || !opened) {
      fmt::print(stderr, "loopfleet: cannot read '{}': {}\n", flags.file,
                 std::strerror(is_directory ? EISDIR : errno));
      return kExitUsage;
    }
    if (flags.file.ends_with(".toml")) {
      fmt::print(stderr,
                 "loopfleet: '{0}' is not job lines; did you mean `loopfleet campaign run {0}`?\n",
                 flags.file);
      return kExitUsage;
    }
  }
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  Submission submission;
  const auto submitted =
      SubmitLines(flags, flags.file == "-" ? std::cin : opened, *client, submission);
  if (!submitted) return ReportPartial(submitted.error(), submission);
  if (submission.batch) {
    fmt::print(stderr, "batch {}: {}\n", submission.batch,
               Counted(submission.line_of_job.size(), "job", "jobs"));
  } else {
    fmt::print(stderr, "no jobs in '{}'\n", flags.file);
  }
  BatchReport report;
  Winners winners(flags.confirm);
  std::vector<Confirmed> confirmed;
  int code = kExitOk;
  const bool waits = flags.wait || flags.jsonl || flags.confirm > 0;
  if (submission.batch && waits) {
    code =
        FollowBatch(*client,
                    {.batch = submission.batch,
                     .output = flags.jsonl ? OutcomeOutput::kJsonl : OutcomeOutput::kNone,
                     .index_of = [&](std::uint32_t job) { return submission.line_of_job.at(job); },
                     .on_outcome = [&](const Outcome& outcome) { winners.Add(outcome); }},
                    report);
    if (code != kExitOk && code != kExitFailed) return code;
    fmt::print(stderr, "{}\n", report.Summary());
    if (!flags.jsonl && !flags.json) fmt::print(stderr, "{}", report.Details());
  }
  if (flags.confirm > 0) {
    const int again = ConfirmWinners(flags, *client, winners.Sorted(), confirmed);
    if (again != kExitOk && again != kExitFailed) return again;
    if (code == kExitOk) code = again;
  }
  if (flags.json) {
    Json json = {{"batch", submission.batch ? Json(submission.batch.value) : Json(nullptr)},
                 {"jobs", submission.line_of_job.size()},
                 {"bad_lines", submission.bad_lines}};
    if (waits) json["ok"] = report.ok();
    if (waits) json["failed"] = report.failed();
    if (flags.confirm > 0) json["confirmed"] = ConfirmedJson(confirmed);
    fmt::print("{}\n", Dump(json));
  }
  return code == kExitOk && submission.bad_lines > 0 ? kExitFailed : code;
}

}  // namespace

void AddSubmitCommand(CommandLine& line) {
  auto flags = std::make_shared<SubmitFlags>();
  CLI::App& app =
      line.AddCommand(line.root(),
                      {.name = "submit",
                       .description = "Send jobs, one JSON object a line, as one batch",
                       .examples = "loopfleet submit jobs.jsonl --wait\n"
                                   "loopfleet submit jobs.jsonl --wait --jsonl > outcomes.jsonl\n"
                                   "loopfleet submit jobs.jsonl --confirm 5\n"
                                   "echo '{\"benchmark\": \"benchmark://mm-v0/mm64_64_64\", "
                                   "\"actions\": [\"split_16\"]}' \\\n"
                                   "  | loopfleet submit - --wait --jsonl"},
                      CommandLine::Talks::kToCoordinator,
                      [flags](const CommandRun& run) { return RunSubmit(*flags, run); });
  app.add_option("file", flags->file,
                 fmt::format("a file of job lines; '-' is standard input. A line's fields: {}; "
                             "`loopfleet eval --help` explains them, each under its option",
                             fmt::join(JobLineFields(), ", ")))
      ->type_name("FILE")
      ->required();
  app.add_flag("--wait", flags->wait, "stay until all outcomes are in");
  auto* jsonl =
      app.add_flag("--jsonl", flags->jsonl,
                   "print each outcome as a line of JSON when it is there (means --wait)");
  app.add_option(
         "--confirm", flags->confirm,
         "when all outcomes are in, measure the K quickest kernels of each benchmark three times "
         "more and say by how much their first figures were too good: a table, or \"confirmed\" "
         "with --json (means --wait)")
      ->type_name("K")
      ->check(CLI::Range(std::size_t{1}, kMostConfirmed));
  app.add_flag("--json", flags->json, "print the batch and its counts as one JSON object")
      ->excludes(jsonl);
}

}  // namespace loopfleet::client
