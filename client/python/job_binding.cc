#include "client/python/job_binding.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/job_line.h"
#include "client/outcome_json.h"
#include "client/python/conversion.h"
#include "common/job/failure.h"
#include "common/looptree/action.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> NamesOf(const std::vector<looptree::Action>& actions) {
  std::vector<std::string> names;
  names.reserve(actions.size());
  for (const auto& action : actions) names.push_back(looptree::ActionName(action));
  return names;
}

std::string TextOf(const looptree::Source& source) {
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&source);
  return uri == nullptr ? std::get<looptree::IrText>(source).text : uri->text;
}

// From the fields of a job line as JSON text: one parser for the command line and for Python.
void MakeJob(Job* place, const std::string& line) {
  auto spec = client::ParseJobLine(line);
  if (!spec) Raise(spec.error().failure);
  new (place) Job{*std::move(spec)};
}

// The common case without the way through JSON.
Job SimpleJob(std::string benchmark, const std::vector<std::string>& names) {
  const std::uint32_t most = looptree::Limits{}.actions;
  if (names.size() > most) {
    Raise({.code = FailureCode::kLimitActions,
           .message = fmt::format("{} actions; one job may have {}", names.size(), most)});
  }
  auto actions = looptree::ParseActions(names);
  if (!actions) Raise(ToFailure(actions.error()));
  return Job{.spec = {.source = looptree::BenchmarkUri{std::move(benchmark)},
                      .actions = *std::move(actions)}};
}

double Figure(const Outcome& outcome, double Measurement::* field) {
  const Evaluation& evaluation = outcome.evaluation;
  return evaluation.ok() ? evaluation.measurement().*field : kNone;
}

double Gflops(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  return evaluation.ok() ? GflopPerSecond(evaluation.flop_count, evaluation.measurement()) : kNone;
}

std::string StatusOf(const Outcome& outcome) {
  return outcome.evaluation.ok() ? "ok"
                                 : std::string(InfoOf(outcome.evaluation.failure().code).name);
}

std::string MessageOf(const Outcome& outcome) {
  if (outcome.evaluation.ok()) return "";
  const Failure& failure = outcome.evaluation.failure();
  return failure.message.empty() ? std::string(InfoOf(failure.code).advice) : failure.message;
}

// An outcome that is made on this side: of a job that could not be sent, or that was not answered.
Outcome FailedOutcome(const std::string& code, const std::string& message,
                      std::optional<std::uint32_t> action_index, std::uint32_t index,
                      std::string benchmark, const std::vector<std::string>& actions) {
  const auto known = ParseFailureCode(code);
  if (!known) throw nb::value_error(fmt::format("unknown failure code '{}'", code).c_str());
  Outcome outcome;
  outcome.job.index = index;
  outcome.evaluation.verdict =
      Failure{.code = *known, .message = message, .action_index = action_index};
  outcome.benchmark = looptree::BenchmarkUri{std::move(benchmark)};
  // Actions that do not exist have no value: the failure's text names them.
  if (auto parsed = looptree::ParseActions(actions)) outcome.actions = *std::move(parsed);
  return outcome;
}

// Texts that repeat: each once, and for each row which.
class TextTable {
 public:
  void Add(const std::string& text) {
    const auto [found, is_new] =
        numbers_.try_emplace(text, static_cast<std::int32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    codes_.push_back(found->second);
  }
  nb::object Take() { return nb::make_tuple(ToArray(std::move(codes_)), nb::cast(texts_)); }

 private:
  std::unordered_map<std::string, std::int32_t> numbers_;
  std::vector<std::string> texts_;
  std::vector<std::int32_t> codes_;
};

struct Columns {
  std::vector<std::uint32_t> index, attempts, threads;
  std::vector<std::uint16_t> status;
  std::vector<std::uint8_t> grade, source, sample_flags, tree_keys;
  std::vector<std::uint64_t> flop_count, iterations;
  std::vector<double> elapsed, low, high, least, mean, spread, gflops, clock_before, clock_after,
      samples;
  std::vector<std::int64_t> sample_offsets = {0}, action_offsets = {0}, finished_at, queue, replay,
                            compile, verify, measure;
  std::vector<double> peak;
  TextTable worker, benchmark, hardware_class, policy, compiler;

  void Add(const Outcome& outcome);
};

void Columns::Add(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  const bool ok = evaluation.ok();
  index.push_back(outcome.job.index);
  status.push_back(ok ? 0 : static_cast<std::uint16_t>(evaluation.failure().code));
  attempts.push_back(outcome.attempts);
  source.push_back(static_cast<std::uint8_t>(outcome.source));
  finished_at.push_back(
      std::chrono::duration_cast<std::chrono::nanoseconds>(outcome.finished_at.time_since_epoch())
          .count());
  elapsed.push_back(Figure(outcome, &Measurement::elapsed_ns));
  low.push_back(Figure(outcome, &Measurement::elapsed_low_ns));
  high.push_back(Figure(outcome, &Measurement::elapsed_high_ns));
  least.push_back(Figure(outcome, &Measurement::elapsed_min_ns));
  mean.push_back(Figure(outcome, &Measurement::elapsed_mean_ns));
  spread.push_back(Figure(outcome, &Measurement::spread));
  gflops.push_back(Gflops(outcome));
  grade.push_back(ok ? static_cast<std::uint8_t>(evaluation.measurement().grade) : 255);
  flop_count.push_back(evaluation.flop_count);
  iterations.push_back(ok ? evaluation.measurement().iterations_per_sample : 0);
  clock_before.push_back(Figure(outcome, &Measurement::clock_before_mhz));
  clock_after.push_back(Figure(outcome, &Measurement::clock_after_mhz));
  if (ok) {
    const Measurement& measurement = evaluation.measurement();
    samples.insert(samples.end(), measurement.samples_ns.begin(), measurement.samples_ns.end());
    sample_flags.insert(sample_flags.end(), measurement.sample_flags.begin(),
                        measurement.sample_flags.end());
  }
  sample_offsets.push_back(static_cast<std::int64_t>(samples.size()));
  const looptree::TreeKey key = evaluation.tree_key.value_or(looptree::TreeKey{});
  tree_keys.insert(tree_keys.end(), key.bytes.begin(), key.bytes.end());
  queue.push_back(evaluation.stages[Stage::kQueue].count());
  replay.push_back(evaluation.stages[Stage::kReplay].count());
  compile.push_back(evaluation.stages[Stage::kCompile].count());
  verify.push_back(evaluation.stages[Stage::kVerify].count());
  measure.push_back(evaluation.stages[Stage::kMeasure].count());
  worker.Add(outcome.worker);
  benchmark.Add(TextOf(outcome.benchmark));
  const Conditions none;
  const Conditions& conditions = evaluation.conditions ? *evaluation.conditions : none;
  hardware_class.Add(conditions.hardware.hardware_class);
  policy.Add(conditions.policy);
  compiler.Add(conditions.compiler.revision);
  threads.push_back(evaluation.conditions ? conditions.threads : 0);
  peak.push_back(conditions.hardware.peaks.flop_per_second > 0
                     ? conditions.hardware.peaks.flop_per_second / 1e9
                     : kNone);
}

nb::dict ColumnsOf(const std::vector<const Outcome*>& outcomes) {
  Columns columns;
  {
    nb::gil_scoped_release unlocked;
    for (const Outcome* outcome : outcomes) columns.Add(*outcome);
  }
  nb::dict dict;
  dict["index"] = ToArray(std::move(columns.index));
  dict["status"] = ToArray(std::move(columns.status));
  dict["gflops"] = ToArray(std::move(columns.gflops));
  dict["elapsed_ns"] = ToArray(std::move(columns.elapsed));
  dict["elapsed_low_ns"] = ToArray(std::move(columns.low));
  dict["elapsed_high_ns"] = ToArray(std::move(columns.high));
  dict["elapsed_min_ns"] = ToArray(std::move(columns.least));
  dict["elapsed_mean_ns"] = ToArray(std::move(columns.mean));
  dict["spread"] = ToArray(std::move(columns.spread));
  dict["grade"] = ToArray(std::move(columns.grade));
  dict["flop_count"] = ToArray(std::move(columns.flop_count));
  dict["iterations_per_sample"] = ToArray(std::move(columns.iterations));
  dict["clock_before_mhz"] = ToArray(std::move(columns.clock_before));
  dict["clock_after_mhz"] = ToArray(std::move(columns.clock_after));
  dict["samples_ns"] = ToArray(std::move(columns.samples));
  dict["sample_flags"] = ToArray(std::move(columns.sample_flags));
  dict["sample_offsets"] = ToArray(std::move(columns.sample_offsets));
  dict["tree_key"] = ToArray(std::move(columns.tree_keys), 16);
  dict["source"] = ToArray(std::move(columns.source));
  dict["attempts"] = ToArray(std::move(columns.attempts));
  dict["threads"] = ToArray(std::move(columns.threads));
  dict["peak_gflops"] = ToArray(std::move(columns.peak));
  dict["finished_at_ns"] = ToArray(std::move(columns.finished_at));
  dict["queue_ns"] = ToArray(std::move(columns.queue));
  dict["replay_ns"] = ToArray(std::move(columns.replay));
  dict["compile_ns"] = ToArray(std::move(columns.compile));
  dict["verify_ns"] = ToArray(std::move(columns.verify));
  dict["measure_ns"] = ToArray(std::move(columns.measure));
  dict["worker"] = columns.worker.Take();
  dict["benchmark"] = columns.benchmark.Take();
  dict["hardware_class"] = columns.hardware_class.Take();
  dict["policy"] = columns.policy.Take();
  dict["compiler"] = columns.compiler.Take();
  return dict;
}

nb::list FailureCodes() {
  nb::list codes;
  for (const FailureInfo& info : FailureTable()) {
    codes.append(nb::make_tuple(static_cast<int>(info.code), std::string(info.name), info.retryable,
                                std::string(info.advice)));
  }
  return codes;
}

void BindOutcome(nb::module_& module) {
  nb::class_<Outcome>(module, "Outcome",
                      "What became of one job. Figures of a failed one are not-a-number.")
      .def_prop_ro("batch", [](const Outcome& o) { return o.job.batch.value; })
      .def_prop_ro(
          "index", [](const Outcome& o) { return o.job.index; },
          "The job's place in its batch, from 0.")
      .def_prop_ro("sequence", [](const Outcome& o) { return o.sequence; })
      .def_prop_ro("ok", [](const Outcome& o) { return o.evaluation.ok(); })
      .def_prop_ro("status", &StatusOf, "\"ok\", or the failure's code.")
      .def_prop_ro("message", &MessageOf, "Why it failed, in one line; \"\" if it did not.")
      .def_prop_ro(
          "retryable",
          [](const Outcome& o) {
            return !o.evaluation.ok() && InfoOf(o.evaluation.failure().code).retryable;
          },
          "Whether the same job may succeed later, unchanged.")
      .def_prop_ro("action_index",
                   [](const Outcome& o) {
                     return o.evaluation.ok() ? std::nullopt : o.evaluation.failure().action_index;
                   })
      .def_prop_ro("gflops", &Gflops, "10^9 floating-point operations per second.")
      .def_prop_ro(
          "elapsed_ns", [](const Outcome& o) { return Figure(o, &Measurement::elapsed_ns); },
          "Median time of one run, in nanoseconds.")
      .def_prop_ro("elapsed_low_ns",
                   [](const Outcome& o) { return Figure(o, &Measurement::elapsed_low_ns); })
      .def_prop_ro("elapsed_high_ns",
                   [](const Outcome& o) { return Figure(o, &Measurement::elapsed_high_ns); })
      .def_prop_ro("elapsed_min_ns",
                   [](const Outcome& o) { return Figure(o, &Measurement::elapsed_min_ns); })
      .def_prop_ro("elapsed_mean_ns",
                   [](const Outcome& o) { return Figure(o, &Measurement::elapsed_mean_ns); })
      .def_prop_ro("spread", [](const Outcome& o) { return Figure(o, &Measurement::spread); })
      .def_prop_ro(
          "grade",
          [](const Outcome& o) {
            return o.evaluation.ok() ? std::string(GradeName(o.evaluation.measurement().grade))
                                     : std::string();
          },
          "\"A\", \"B\" or \"C\"; \"\" of a failed job.")
      .def_prop_ro(
          "samples_ns",
          [](const Outcome& o) {
            return ToArray(o.evaluation.ok() ? o.evaluation.measurement().samples_ns
                                             : std::vector<double>{});
          },
          nb::rv_policy::reference)  // the array owns what it shows
      .def_prop_ro("flop_count", [](const Outcome& o) { return o.evaluation.flop_count; })
      .def_prop_ro("tree_key",
                   [](const Outcome& o) {
                     return o.evaluation.tree_key ? o.evaluation.tree_key->ToString()
                                                  : std::string();
                   })
      .def_prop_ro(
          "peak_gflops",
          [](const Outcome& o) {
            return o.evaluation.conditions
                       ? o.evaluation.conditions->hardware.peaks.flop_per_second / 1e9
                       : 0.0;
          },
          "The device's measured peak; 0: not known.")
      .def_prop_ro(
          "source", [](const Outcome& o) { return std::string(OutcomeSourceName(o.source)); },
          "\"measured\", \"stored\" or \"coalesced\".")
      .def_prop_ro("attempts", [](const Outcome& o) { return o.attempts; })
      .def_prop_ro("worker", [](const Outcome& o) { return o.worker; })
      .def_prop_ro(
          "benchmark", [](const Outcome& o) { return TextOf(o.benchmark); },
          "The URI, or the IR text of a program that was sent.")
      .def_prop_ro("actions", [](const Outcome& o) { return NamesOf(o.actions); })
      .def(
          "to_dict", [](const Outcome& o) { return ToPython(client::OutcomeJson(o)); },
          "All there is, with the fields of `loopfleet eval --json`.")
      .def("__repr__", [](const Outcome& o) {
        if (!o.evaluation.ok()) return fmt::format("<Outcome {}: {}>", StatusOf(o), MessageOf(o));
        return fmt::format("<Outcome {:.4g} GFLOP/s, {:.4g} ns, grade {}, {}>", Gflops(o),
                           o.evaluation.measurement().elapsed_ns,
                           GradeName(o.evaluation.measurement().grade),
                           OutcomeSourceName(o.source));
      });
}

}  // namespace

void BindJobs(nb::module_& module) {
  nb::class_<Job>(module, "Job",
                  "One question: how fast is this benchmark after these actions? Made by "
                  "loopfleet.job().")
      .def("__init__", &MakeJob, "line"_a,
           "From a job line: JSON text, as `loopfleet submit` reads.")
      .def_static("simple", &SimpleJob, "benchmark"_a, "actions"_a,
                  "A URI and names of actions, everything else at its default.")
      .def_prop_ro("line", [](const Job& job) { return client::JobLine(job.spec); })
      .def_prop_ro("benchmark", [](const Job& job) { return TextOf(job.spec.source); })
      .def_prop_ro("actions", [](const Job& job) { return NamesOf(job.spec.actions); })
      .def_prop_ro("affinity", [](const Job& job) { return job.spec.affinity; })
      .def("__eq__", [](const Job& a, const Job& b) { return a.spec == b.spec; })
      .def("__repr__",
           [](const Job& job) { return fmt::format("<Job {}>", client::JobLine(job.spec)); });
  BindOutcome(module);
  module.def("failed_outcome", &FailedOutcome, "code"_a, "message"_a, "action_index"_a = nb::none(),
             "index"_a = 0, "benchmark"_a = "", "actions"_a = std::vector<std::string>{});
  module.def("columns", &ColumnsOf, "outcomes"_a,
             "Many outcomes as NumPy arrays, one entry a row, which own what C++ made.");
  module.def(
      "iso_time",
      [](const Outcome& outcome) {
        const auto since = outcome.finished_at.time_since_epoch();
        const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000;
        return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), ms);
      },
      "outcome"_a, "When it finished, by the coordinator's clock.");
  module.def("failure_codes", &FailureCodes, "(number, name, retryable, advice) of every code.");
}

}  // namespace loopfleet::python
