#include "common/job/loop_schedule.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/result.h"
#include "common/looptree/tree/key.h"

namespace loopfleet {

looptree::ReplayOptions ReplayOptionsOf(const JobSpec& spec) {
  return {
      .rules = spec.rules, .on_illegal = spec.on_illegal, .merge_all_first = spec.merge_all_first};
}

std::expected<looptree::Replayed, Failure> ReplayJob(const JobSpec& spec) {
  auto replayed = looptree::Replay(spec.source, spec.actions, ReplayOptionsOf(spec));
  if (!replayed) return std::unexpected(ToFailure(replayed.error()));
  if (spec.dialect && *spec.dialect != replayed->benchmark.dialect) {
    return std::unexpected(Failure{
        .code = FailureCode::kInvalidBenchmark,
        .message = fmt::format("the job says dialect '{}', but the benchmark's is '{}'",
                               EnumName(*spec.dialect), EnumName(replayed->benchmark.dialect))});
  }
  return *std::move(replayed);
}

std::expected<ResolvedTask, Failure> ResolveLoopSchedule(const JobSpec& spec) {
  LF_TRY(const looptree::Replayed replayed, ReplayJob(spec));
  const std::uint64_t flop_count = looptree::FlopCount(replayed.tree.program());
  LF_TRY(const Placement placement, PlaceJob(spec.device, replayed.benchmark.target, flop_count));
  return ResolvedTask{.subject = looptree::KeyOf(replayed.tree),
                      .program = looptree::ProgramKeyOf(replayed.tree.program()),
                      .placement = placement,
                      .flop_count = flop_count};
}

}  // namespace loopfleet
