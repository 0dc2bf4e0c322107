#include "client/cli/text/outcome_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "client/profile_text.h"
#include "common/base/counted.h"
#include "common/base/printable.h"
#include "common/job/loop_schedule.h"
#include "common/job/profile.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/text/text.h"

namespace loopfleet::client {
namespace {

std::string OriginText(const Outcome& outcome) {
  const std::string worker = outcome.worker.empty() ? "a worker" : Printable(outcome.worker);
  switch (outcome.source) {
    case OutcomeSource::kMeasured:
      if (outcome.evaluation.same_code) {
        return "same machine code as a kernel measured before";
      }
      return fmt::format("measured by {}, attempt {}", worker, outcome.attempts);
    case OutcomeSource::kStored:
      return fmt::format("answered from the store, measured by {}", worker);
    case OutcomeSource::kCoalesced:
      return fmt::format("shared with an equal job under way, measured by {}", worker);
  }
  return "";
}

std::string StagesText(const StageDurations& stages) {
  std::vector<std::string> parts;
  for (const Stage stage : kStages) {
    if (stages[stage] == Nanos{0}) continue;  // the job skipped this stage
    parts.push_back(fmt::format("{} {}", StageName(stage), DurationText(stages[stage])));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// A value in one line; of a list the first numbers, of a text the first line.
struct ValueText {
  std::string operator()(double number) const { return fmt::format("{:.6g}", number); }
  std::string operator()(const std::vector<double>& numbers) const {
    constexpr std::size_t kShown = 8;
    const auto shown = std::span(numbers).first(std::min(numbers.size(), kShown));
    return fmt::format(
        "{:.6g}{}", fmt::join(shown, " "),
        shown.size() < numbers.size() ? fmt::format(" ... ({})", numbers.size()) : std::string());
  }
  std::string operator()(const std::string& text) const {
    const std::size_t line = text.find('\n');
    return line == text.npos ? text : text.substr(0, line) + " ...";
  }
  std::string operator()(const Blob& blob) const {
    return fmt::format("{} bytes: loopfleet llvm get {}", blob.bytes, blob.sha256);
  }
};

std::string ValuesText(const Observed& observed) {
  std::string text;
  std::size_t width = 0;
  for (const auto& [name, value] : observed.values) width = std::max(width, name.size());
  for (const auto& [name, value] : observed.values) {
    text += fmt::format("  {:<{}}  {}\n", Printable(name), width,
                        Printable(std::visit(ValueText{}, value)));
  }
  return text;
}

std::string ObservedText(const JobSpec& spec, const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  std::string text = fmt::format("{}\n", Printable(SourceText(spec.source)));
  const std::optional<Profile> profile = ProfileOf(evaluation.observed());
  if (profile && spec.profile != ProfileLevel::kNone) {
    text += ProfileText(spec, *profile);
  } else {
    text += ValuesText(evaluation.observed());
  }
  text += fmt::format("job {}: {}\n", outcome.job, OriginText(outcome));
  if (evaluation.conditions) {
    const HardwareFacts& hardware = evaluation.conditions->hardware;
    text += fmt::format("on {} ({}), host {}\n", Printable(hardware.model), Printable(hardware.isa),
                        Printable(hardware.host));
  }
  return text + fmt::format("stages: {}\n", StagesText(evaluation.stages));
}

}  // namespace

std::string DurationText(Nanos duration) {
  const double ns = static_cast<double>(duration.count());
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.4g} s", ns / 1e9);
}

std::string TimeText(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(seconds.time_since_epoch().count()));
}

std::string SourceText(const looptree::Source& source) {
  if (const auto* uri = std::get_if<looptree::BenchmarkUri>(&source)) return uri->text;
  return "a program given as IR text";
}

std::string TreeOf(const JobSpec& spec) {
  const auto replayed = ReplayJob(spec);
  if (!replayed) return "";
  return looptree::TreeText(replayed->tree, {.dialect = replayed->benchmark.dialect,
                                             .target = replayed->benchmark.target});
}

std::string FigureText(const Outcome& outcome) {
  const Measurement& measurement = outcome.evaluation.measurement();
  const double flops = static_cast<double>(outcome.evaluation.flop_count);
  return fmt::format("{:.4g} GFLOP/s, spread {:.2g} % (interval {:.4g} to {:.4g}), grade {}\n",
                     flops / measurement.elapsed_ns, measurement.spread * 100,
                     flops / measurement.elapsed_high_ns, flops / measurement.elapsed_low_ns,
                     EnumName(measurement.grade));
}

std::string AnswerText(const JobSpec& spec, const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  if (!evaluation.is_timed()) return ObservedText(spec, outcome);
  const Measurement& measurement = evaluation.measurement();
  std::string text = fmt::format("{}\n{}", Printable(SourceText(spec.source)), TreeOf(spec));
  text += FigureText(outcome);
  text += fmt::format("{} a run: median of {} accepted of {} of {}, best {}\n",
                      DurationText(Nanos(static_cast<std::int64_t>(measurement.elapsed_ns))),
                      AcceptedSamples(measurement),
                      Counted(SampleCount(measurement), "sample", "samples"),
                      Counted(measurement.iterations_per_sample, "run", "runs"),
                      DurationText(Nanos(static_cast<std::int64_t>(measurement.elapsed_min_ns))));
  if (measurement.thinned) {
    text += fmt::format("thinned since: {} of {} kept\n", measurement.samples_ns.size(),
                        Counted(SampleCount(measurement), "sample", "samples"));
  }
  for (const std::string& note : evaluation.notes) {
    text += fmt::format("{}: {}\n", IsPartial(note) ? "followed in part" : "without effect",
                        Printable(note));
  }
  text += fmt::format("job {}: {}\n", outcome.job, OriginText(outcome));
  if (evaluation.conditions) {
    const Conditions& conditions = *evaluation.conditions;
    text += fmt::format("on {} ({}), LLVM {} tier {}\n", Printable(conditions.hardware.model),
                        Printable(conditions.hardware.isa), Printable(conditions.compiler.llvm),
                        Printable(conditions.compiler.tier));
  }
  if (measurement.device) {
    const DeviceState& device = *measurement.device;
    text +=
        fmt::format("device: {:.0f} MHz, memory {:.0f} MHz, at most {:.0f} C and {:.0f} W{}{}\n",
                    measurement.clock_after_mhz, device.memory_clock_mhz, device.temperature_c,
                    device.power_w, device.throttle_reasons == 0 ? "" : ", throttle reasons: ",
                    fmt::join(ThrottleReasons(device.throttle_reasons), ", "));
  }
  return text + fmt::format("stages: {}\n", StagesText(evaluation.stages));
}

std::string FailureText(const Failure& failure) {
  const FailureInfo& info = InfoOf(failure.code);
  std::string text = fmt::format(
      "{}: {}", info.name,
      failure.message.empty() ? std::string(info.advice) : Printable(failure.message, "\n\t"));
  if (failure.action_index) text += fmt::format(" (action {})", *failure.action_index);
  return text;
}

}  // namespace loopfleet::client
