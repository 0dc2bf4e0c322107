#include "client/cli/commands/forget_failures_command.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "client/cli/commands/offline_database.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/age.h"
#include "client/outcome_json.h"
#include "common/base/clock.h"
#include "common/base/counted.h"
#include "common/job/failure.h"
#include "storage/store.h"

namespace loopfleet::client {
namespace {

struct ForgetFlags {
  std::string file;
  std::string worker;
  std::string code;
  std::string older_than;
  bool json = false;
};

Result<storage::FailureFilter> FilterOf(const ForgetFlags& flags) {
  storage::FailureFilter filter{.of = flags.worker};
  if (!flags.code.empty()) {
    filter.code = ParseFailureCode(flags.code);
    if (!filter.code) {
      return Fail(ErrorKind::kInvalid,
                  fmt::format("--code: '{}' is no failure code, such as RUN_CRASH", flags.code));
    }
  }
  if (!flags.older_than.empty()) {
    const auto age = ParseAge(flags.older_than);
    if (!age) return Fail(ErrorKind::kInvalid, "--older-than: " + age.error().message);
    filter.failed_before = SystemClock().WallNow() - *age;
  }
  return filter;
}

int Run(const ForgetFlags& flags) {
  const auto filter = FilterOf(flags);
  if (!filter) {
    Complain(filter.error());
    return kExitUsage;
  }
  const auto store = OpenToWrite(flags.file, nullptr);
  if (!store) return kExitFailed;
  const auto count = store->ForgetFailures(*filter);
  if (!count) return Complain(count.error());
  if (flags.json) fmt::print("{}\n", Dump(Json{{"forgotten", *count}}));
  fmt::print(stderr, "{} forgotten; the next job with such a tree is run\n",
             Counted(*count, "verdict", "verdicts"));
  return kExitOk;
}

}  // namespace

void AddForgetFailures(CommandLine& line, CLI::App& noun) {
  const auto flags = std::make_shared<ForgetFlags>();
  CLI::App& forget = line.AddCommand(
      noun,
      {.name = "forget-failures",
       .description = "Let known failures answer no equal job any more: their trees are run again. "
                      "Outcomes stay. No coordinator may be running on it",
       .examples = "loopfleet db forget-failures loopfleet.db --worker broken-host\n"
                   "loopfleet db forget-failures loopfleet.db --code RUN_TIMEOUT"},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return Run(*flags); });
  forget.add_option("file", flags->file, "the database")->type_name("FILE")->required();
  forget.add_option("--worker", flags->worker, "only verdicts of this worker or host")
      ->type_name("NAME");
  forget.add_option("--code", flags->code, "only of this failure code")->type_name("CODE");
  forget
      .add_option("--older-than", flags->older_than,
                  "only verdicts given longer ago: 36h, 90d, 52w")
      ->type_name("AGE");
  forget.add_flag("--json", flags->json, "print one JSON value");
}

}  // namespace loopfleet::client
