#include "client/python/job_binding.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
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
#include "client/python/dataset_row.h"
#include "common/job/failure.h"
#include "common/job/loop_schedule.h"
#include "common/looptree/actions/action.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint8_t kNoGrade = 255;

std::string TextOf(const looptree::Source& source) {
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&source);
  return uri == nullptr ? std::get<looptree::IrText>(source).text : uri->text;
}

// Parses a job line (JSON text) with the parser of the command line.
void MakeJob(Job* place, const std::string& line) {
  auto spec = client::ParseJobLine(line);
  if (!spec) Raise(spec.error().failure);
  new (place) Job{*std::move(spec)};
}

// The common case, without JSON.
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

bool IsSameCode(const OutcomeRow& o) {
  return o.page->source[o.row] == OutcomeSource::kMeasured && o.figures().same_code[o.row];
}
// The index into loopfleet.SOURCES.
std::uint8_t SourceNumber(const OutcomeRow& o) {
  constexpr std::uint8_t kSameCode = 3;
  return IsSameCode(o) ? kSameCode : static_cast<std::uint8_t>(o.page->source[o.row]);
}
std::string_view SourceNameOf(const OutcomeRow& o) {
  return IsSameCode(o) ? kSameCodeSource : EnumName(o.page->source[o.row]);
}

double Gflops(const OutcomeRow& outcome) {
  const wire::EvaluationColumns& figures = outcome.figures();  // failed: NaN
  return static_cast<double>(figures.flop_count[outcome.row]) / figures.elapsed_ns[outcome.row];
}

double PeakGflops(const OutcomeRow& outcome) {
  const Conditions* conditions = outcome.figures().conditions_of(outcome.row);
  return conditions == nullptr ? 0.0 : conditions->hardware.peaks.flop_per_second / 1e9;
}

std::string StatusOf(const OutcomeRow& outcome) {
  if (outcome.ok()) return "ok";
  return std::string(InfoOf(outcome.figures().failure(outcome.row).code).name);
}

std::string MessageOf(const OutcomeRow& outcome) {
  if (outcome.ok()) return "";
  const Failure& failure = outcome.figures().failure(outcome.row);
  return failure.message.empty() ? std::string(InfoOf(failure.code).advice) : failure.message;
}

std::vector<looptree::Action> ActionsOf(const OutcomeRow& outcome) {
  const auto& [page, row] = outcome;
  return {page->actions.begin() + page->action_offsets[row],
          page->actions.begin() + page->action_offsets[row + 1]};
}

// An outcome made by the client, for a job that could not be sent or was not answered.
OutcomeRow FailedOutcome(const std::string& code, const std::string& message,
                         std::optional<std::uint32_t> action_index, std::uint32_t index,
                         std::string benchmark, const std::vector<std::string>& actions) {
  const auto known = ParseFailureCode(code);
  if (!known) throw nb::value_error(fmt::format("unknown failure code '{}'", code).c_str());
  Outcome outcome;
  outcome.job.index = index;
  outcome.evaluation.verdict =
      Failure{.code = *known, .message = message, .action_index = action_index};
  outcome.benchmark = looptree::BenchmarkUri{std::move(benchmark)};
  // If one action is unknown, none is kept; the failure's message names it.
  if (auto parsed = looptree::ParseActions(actions)) outcome.actions = *std::move(parsed);
  return RowOf(outcome);
}

using Rows = std::vector<const OutcomeRow*>;

// An array of `figure(row)` for all rows.
template <class T, class Figure>
Array<T> Gather(const Rows& rows, Figure&& figure) {
  std::vector<T> values(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) values[i] = static_cast<T>(figure(*rows[i]));
  return ToArray(std::move(values));
}

template <class T, class Column>
Array<T> GatherFigures(const Rows& rows, Column wire::EvaluationColumns::* column) {
  return Gather<T>(rows, [&](const OutcomeRow& o) { return (o.figures().*column)[o.row]; });
}

template <class T, class Column>
Array<T> GatherPlaces(const Rows& rows, Column wire::OutcomeColumns::* column) {
  return Gather<T>(rows, [&](const OutcomeRow& o) { return ((*o.page).*column)[o.row]; });
}

Array<std::int64_t> GatherStage(const Rows& rows, Stage stage) {
  return Gather<std::int64_t>(
      rows, [&](const OutcomeRow& o) { return o.figures().stages[o.row][stage].count(); });
}

// Dictionary encoding of repeated texts: each text once, and a code per row. A page holds each of
// its texts once, so each is looked up once per page.
class TextTable {
 public:
  // `entry`: index of the text in the page.
  void Add(const wire::OutcomeColumns& page, std::uint32_t entry, const std::string& text) {
    if (&page != page_) {
      page_ = &page;
      known_ = &known_of_[page_];
    }
    if (entry >= known_->size()) known_->resize(entry + 1, kUnknown);
    std::int32_t& code = (*known_)[entry];
    if (code == kUnknown) {
      const auto [found, is_new] =
          numbers_.try_emplace(text, static_cast<std::int32_t>(texts_.size()));
      if (is_new) texts_.push_back(text);
      code = found->second;
    }
    codes_.push_back(code);
  }
  nb::object Take() { return nb::make_tuple(ToArray(std::move(codes_)), nb::cast(texts_)); }

 private:
  static constexpr std::int32_t kUnknown = -1;
  const wire::OutcomeColumns* page_ = nullptr;
  std::vector<std::int32_t>* known_ = nullptr;
  std::unordered_map<const wire::OutcomeColumns*, std::vector<std::int32_t>> known_of_;
  std::unordered_map<std::string, std::int32_t> numbers_;
  std::vector<std::string> texts_;
  std::vector<std::int32_t> codes_;
};

void AddSamples(const Rows& rows, nb::dict& dict) {
  std::vector<std::int64_t> offsets = {0};
  offsets.reserve(rows.size() + 1);
  for (const OutcomeRow* o : rows) {
    const auto& at = o->figures().sample_offsets;
    offsets.push_back(offsets.back() + at[o->row + 1] - at[o->row]);
  }
  std::vector<double> samples(static_cast<std::size_t>(offsets.back()));
  std::vector<std::uint8_t> flags(samples.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const wire::EvaluationColumns& from = rows[i]->figures();
    const std::uint32_t first = from.sample_offsets[rows[i]->row];
    const auto count = offsets[i + 1] - offsets[i];
    std::copy_n(from.samples_ns.begin() + first, count, samples.begin() + offsets[i]);
    std::copy_n(from.sample_flags.begin() + first, count, flags.begin() + offsets[i]);
  }
  dict["samples_ns"] = ToArray(std::move(samples));
  dict["sample_flags"] = ToArray(std::move(flags));
  dict["sample_offsets"] = ToArray(std::move(offsets));
}

void AddTreeKeys(const Rows& rows, nb::dict& dict) {
  constexpr std::size_t kWidth = sizeof(SubjectKey::bytes);
  std::vector<std::uint8_t> keys(rows.size() * kWidth);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SubjectKey& key = rows[i]->figures().subjects[rows[i]->row];
    std::copy_n(key.bytes.begin(), kWidth, keys.data() + i * kWidth);
  }
  dict["tree_key"] = ToArray(std::move(keys), kWidth);
}

void AddTexts(const Rows& rows, nb::dict& dict) {
  static const Conditions none;
  TextTable worker, benchmark, hardware_class, policy, compiler;
  const std::string nobody;
  for (const OutcomeRow* o : rows) {
    const wire::OutcomeColumns& page = *o->page;
    const std::uint32_t by = page.worker[o->row];
    worker.Add(page, by, by == 0 ? nobody : page.worker_table[by - 1]);
    benchmark.Add(page, page.benchmark[o->row],
                  std::visit([](const auto& kind) -> const std::string& { return kind.text; },
                             page.benchmark_of(o->row)));
    const std::uint32_t under = page.evaluations.conditions[o->row];
    const Conditions* known = page.evaluations.conditions_of(o->row);
    const Conditions& conditions = known == nullptr ? none : *known;
    hardware_class.Add(page, under, conditions.hardware.hardware_class);
    policy.Add(page, under, conditions.policy);
    compiler.Add(page, under, conditions.compiler.revision);
  }
  dict["worker"] = worker.Take();
  dict["benchmark"] = benchmark.Take();
  dict["hardware_class"] = hardware_class.Take();
  dict["policy"] = policy.Take();
  dict["compiler"] = compiler.Take();
}

nb::dict ColumnsOf(const Rows& rows) {
  using Figures = wire::EvaluationColumns;
  using Places = wire::OutcomeColumns;
  const auto clock = [&](std::vector<double> Figures::* column) {
    return Gather<double>(rows, [&](const OutcomeRow& o) {
      return o.is_timed() ? (o.figures().*column)[o.row] : kNone;
    });
  };
  nb::dict dict;
  dict["status"] = Gather<std::uint16_t>(rows, [](const OutcomeRow& o) {
    return o.ok() ? std::uint16_t{0} : o.figures().status[o.row];
  });
  dict["gflops"] = Gather<double>(rows, &Gflops);
  dict["elapsed_ns"] = GatherFigures<double>(rows, &Figures::elapsed_ns);
  dict["elapsed_low_ns"] = GatherFigures<double>(rows, &Figures::elapsed_low_ns);
  dict["elapsed_high_ns"] = GatherFigures<double>(rows, &Figures::elapsed_high_ns);
  dict["elapsed_min_ns"] = GatherFigures<double>(rows, &Figures::elapsed_min_ns);
  dict["elapsed_mean_ns"] = GatherFigures<double>(rows, &Figures::elapsed_mean_ns);
  dict["spread"] = GatherFigures<double>(rows, &Figures::spread);
  dict["grade"] = Gather<std::uint8_t>(rows, [](const OutcomeRow& o) {
    return o.is_timed() ? static_cast<std::uint8_t>(o.figures().grade[o.row]) : kNoGrade;
  });
  dict["flop_count"] = GatherFigures<std::uint64_t>(rows, &Figures::flop_count);
  dict["iterations_per_sample"] =
      GatherFigures<std::uint64_t>(rows, &Figures::iterations_per_sample);
  dict["clock_before_mhz"] = clock(&Figures::clock_before_mhz);
  dict["clock_after_mhz"] = clock(&Figures::clock_after_mhz);
  AddSamples(rows, dict);
  AddTreeKeys(rows, dict);
  dict["source"] = Gather<std::uint8_t>(rows, &SourceNumber);
  dict["attempts"] = GatherPlaces<std::uint32_t>(rows, &Places::attempts);
  dict["threads"] = Gather<std::uint32_t>(rows, [](const OutcomeRow& o) {
    const Conditions* conditions = o.figures().conditions_of(o.row);
    return conditions == nullptr ? 0 : conditions->threads;
  });
  dict["peak_gflops"] = Gather<double>(rows, [](const OutcomeRow& o) {
    const double peak = PeakGflops(o);
    return peak > 0 ? peak : kNone;
  });
  dict["finished_at_ns"] = Gather<std::int64_t>(rows, [](const OutcomeRow& o) {
    return o.page->finished_at[o.row].time_since_epoch().count();
  });
  dict["queue_ns"] = GatherStage(rows, Stage::kQueue);
  dict["replay_ns"] = GatherStage(rows, Stage::kReplay);
  dict["compile_ns"] = GatherStage(rows, Stage::kCompile);
  dict["verify_ns"] = GatherStage(rows, Stage::kVerify);
  dict["measure_ns"] = GatherStage(rows, Stage::kMeasure);
  AddTexts(rows, dict);
  return dict;
}

nb::list FailureCodes() {
  nb::list codes;
  for (const FailureInfo& info : FailureTable()) {
    codes.append(nb::make_tuple(static_cast<int>(info.code), std::string(info.name),
                                info.policy.is_retryable, std::string(info.advice)));
  }
  return codes;
}

// A time in nanoseconds; NaN for a failed job.
auto FigureOf(std::vector<double> wire::EvaluationColumns::* column) {
  return [column](const OutcomeRow& o) { return (o.figures().*column)[o.row]; };
}

// For pickle: as a coordinator would send it.
nb::bytes StateOf(const OutcomeRow& outcome) {
  const std::string frame = wire::Encode(
      wire::CoordinatorReply{.message = wire::OutcomeList{.outcomes = {outcome.Whole()}}});
  return nb::bytes(frame.data(), frame.size());
}

void SetState(OutcomeRow& outcome, const nb::bytes& state) {
  auto reply = wire::DecodeCoordinatorReply({state.c_str(), state.size()});
  if (!reply) throw nb::value_error(reply.error().message.c_str());
  const auto* list = std::get_if<wire::OutcomeList>(&reply->message);
  if (list == nullptr || list->outcomes.size() != 1) throw nb::value_error("this is no outcome");
  new (&outcome) OutcomeRow(RowOf(list->outcomes.front()));
}

void BindOutcome(nb::module_& module) {
  using Figures = wire::EvaluationColumns;
  nb::class_<OutcomeRow>(module, "Outcome",
                         "What became of one job. Figures of a failed one are not-a-number.")
      .def("__getstate__", &StateOf)
      .def("__setstate__", &SetState)
      .def_prop_ro("batch", [](const OutcomeRow& o) { return o.page->batch.value; })
      .def_prop_ro(
          "index", [](const OutcomeRow& o) { return o.page->index[o.row]; },
          "The job's place in its batch, from 0.")
      .def_prop_ro("sequence", [](const OutcomeRow& o) { return o.page->sequence[o.row]; })
      .def_prop_ro("ok", &OutcomeRow::ok)
      .def_prop_ro("status", &StatusOf, "\"ok\", or the failure's code.")
      .def_prop_ro("message", &MessageOf, "Why it failed, in one line; \"\" if it did not.")
      .def_prop_ro(
          "retryable",
          [](const OutcomeRow& o) {
            return !o.ok() && InfoOf(o.figures().failure(o.row).code).policy.is_retryable;
          },
          "Whether the same job may succeed later, unchanged.")
      .def_prop_ro("action_index",
                   [](const OutcomeRow& o) {
                     return o.ok() ? std::nullopt : o.figures().failure(o.row).action_index;
                   })
      .def_prop_ro("gflops", &Gflops, "10^9 floating-point operations per second.")
      .def_prop_ro("elapsed_ns", FigureOf(&Figures::elapsed_ns),
                   "Median time of one run, in nanoseconds.")
      .def_prop_ro("elapsed_low_ns", FigureOf(&Figures::elapsed_low_ns))
      .def_prop_ro("elapsed_high_ns", FigureOf(&Figures::elapsed_high_ns))
      .def_prop_ro("elapsed_min_ns", FigureOf(&Figures::elapsed_min_ns))
      .def_prop_ro("elapsed_mean_ns", FigureOf(&Figures::elapsed_mean_ns))
      .def_prop_ro("spread", FigureOf(&Figures::spread))
      .def_prop_ro(
          "grade",
          [](const OutcomeRow& o) {
            return o.is_timed() ? std::string(EnumName(o.figures().grade[o.row])) : std::string();
          },
          "\"A\" within 1 %, \"B\" within 5 %, \"C\" worse, \"D\" no more than an order of "
          "magnitude; \"\" of a job that failed or is not timed.")
      .def_prop_ro(
          "observed",
          [](const OutcomeRow& o) -> nb::object {
            if (!o.ok() || o.is_timed()) return nb::none();
            return ToPython(ObservedJson(o.figures().observed_of(o.row)));
          },
          "Values by name, of a job that is not timed (a probe); else None.")
      .def_prop_ro(
          "samples_ns",
          [](const OutcomeRow& o) {
            const Figures& from = o.figures();
            return ToArray(
                std::vector<double>(from.samples_ns.begin() + from.sample_offsets[o.row],
                                    from.samples_ns.begin() + from.sample_offsets[o.row + 1]));
          },
          nb::rv_policy::reference)  // the array owns its data
      .def_prop_ro("flop_count", [](const OutcomeRow& o) { return o.figures().flop_count[o.row]; })
      .def_prop_ro("tree_key",
                   [](const OutcomeRow& o) {
                     return o.figures().subject_known[o.row]
                                ? o.figures().subjects[o.row].ToString()
                                : std::string();
                   })
      .def_prop_ro(
          "code_hash",
          [](const OutcomeRow& o) { return std::string(o.figures().code_hash[o.row]); },
          "Digest of the object code; \"\": none was made.")
      .def_prop_ro(
          "hardware_class",
          [](const OutcomeRow& o) {
            const Conditions* conditions = o.figures().conditions_of(o.row);
            return conditions == nullptr ? std::string() : conditions->hardware.hardware_class;
          },
          "Results are shared within a class; \"\": no worker had the job.")
      .def_prop_ro("peak_gflops", &PeakGflops,
                   "The device's measured peak, of one thread; 0: not known.")
      .def_prop_ro(
          "source", [](const OutcomeRow& o) { return std::string(SourceNameOf(o)); },
          "\"measured\", \"same_code\", \"stored\" or \"coalesced\".")
      .def_prop_ro("attempts", [](const OutcomeRow& o) { return o.page->attempts[o.row]; })
      .def_prop_ro("worker",
                   [](const OutcomeRow& o) {
                     const std::uint32_t by = o.page->worker[o.row];
                     return by == 0 ? std::string() : o.page->worker_table[by - 1];
                   })
      .def_prop_ro(
          "benchmark", [](const OutcomeRow& o) { return TextOf(o.page->benchmark_of(o.row)); },
          "The URI, or the IR text of a program that was sent.")
      .def_prop_ro("actions",
                   [](const OutcomeRow& o) { return looptree::ActionNames(ActionsOf(o)); })
      .def(
          "to_dict", [](const OutcomeRow& o) { return ToPython(client::OutcomeJson(o.Whole())); },
          "All there is, with the fields of `loopfleet eval --json`.")
      .def(
          "dataset_row", [](const OutcomeRow& o) { return DatasetRow(o.Whole()); },
          "The fields of `loopfleet.rows.FIELDS` in their order; `program`, `region` and "
          "`suspect`, "
          "which it does not say, are None. None: the job is not timed.")
      .def("__repr__", [](const OutcomeRow& o) {
        if (!o.ok()) return fmt::format("<Outcome {}: {}>", StatusOf(o), MessageOf(o));
        if (!o.is_timed()) {
          return fmt::format("<Outcome of {} values, {}>",
                             o.figures().observed_of(o.row).values.size(), SourceNameOf(o));
        }
        return fmt::format("<Outcome {:.4g} GFLOP/s, {:.4g} ns, grade {}, {}>", Gflops(o),
                           o.figures().elapsed_ns[o.row], EnumName(o.figures().grade[o.row]),
                           SourceNameOf(o));
      });
}

}  // namespace

nb::list RowsOf(wire::OutcomeColumns page) {
  const auto shared = std::make_shared<const wire::OutcomeColumns>(std::move(page));
  nb::list rows;
  for (std::uint32_t row = 0; row < shared->rows(); ++row) {
    rows.append(nb::cast(OutcomeRow{.page = shared, .row = row}));
  }
  return rows;
}

OutcomeRow RowOf(const Outcome& outcome) {
  auto page = std::make_shared<wire::OutcomeColumns>();
  page->Append(outcome);
  return {.page = std::move(page), .row = 0};
}

void BindJobs(nb::module_& module) {
  module.attr("MOST_THREADS") = kMostThreads;
  module.attr("MOST_PASSES") = kMostPasses;
  nb::class_<Job>(module, "Job",
                  "One question: how fast is this benchmark after these actions? Made by "
                  "loopfleet.job().")
      .def("__init__", &MakeJob, "line"_a,
           "From a job line: JSON text, as `loopfleet submit` reads.")
      .def_static("simple", &SimpleJob, "benchmark"_a, "actions"_a,
                  "A URI and names of actions, everything else at its default.")
      .def("__getstate__", [](const Job& job) { return client::JobLine(job.spec); })
      .def("__setstate__", [](Job& job, const std::string& line) { MakeJob(&job, line); })
      .def_prop_ro("line", [](const Job& job) { return client::JobLine(job.spec); })
      .def_prop_ro("benchmark", [](const Job& job) { return TextOf(job.spec.source); })
      .def_prop_ro("actions",
                   [](const Job& job) { return looptree::ActionNames(job.spec.actions); })
      .def_prop_ro(
          "tree",
          [](const Job& job) {
            auto replayed = ReplayJob(job.spec);
            if (!replayed) Raise(replayed.error());
            return std::move(replayed->tree);
          },
          "The LoopTree that its actions lead to. JobError: they lead to none.")
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
      "iso_time", [](const OutcomeRow& o) { return IsoTime(o.page->finished_at[o.row]); },
      "outcome"_a, "When it finished, by the coordinator's clock.");
  module.def("failure_codes", &FailureCodes, "(number, name, retryable, advice) of every code.");
}

}  // namespace loopfleet::python
