#include "tests/unit/storage/record_samples.h"

#include <fmt/format.h>

namespace loopfleet::storage {

using namespace looptree;

JobSpec PlainSpec(int number) {
  return {.source = BenchmarkUri{fmt::format("benchmark://mm-v0/mm64_64_{}", number)},
          .actions = {Down{}, SwapUp{}, Split{number}}};
}

JobSpec FullSpec() {
  return {.source = IrText{"a program\nof two 'lines' \xc3\xa9"},
          .actions = {ToggleMode{}, ToggleThread{}, IdleSplit{}, Up{}, Down{}, SwapUp{}, SwapDown{},
                      Split{5}, Merge{}, Unroll{}, Vectorize{}, Undo{}, Dummy{}},
          .rules = RuleSet::kLoopNest58,
          .on_illegal = OnIllegal::kSkip,
          .merge_all_first = true,
          .dialect = Dialect::kSimple,
          .device = DeviceRequest::kAny,
          .freshness = Freshness::kMeasureAgain,
          .tag = R"({"id": [1, "two"]})",
          .priority = -3,
          .threads = 7,
          .cache = CacheState::kCold,
          .labels = {"gpu", "a \"quoted\" one"},
          .affinity = "same,worker",
          .precision = 0.01,
          .budget_ms = 12.5,
          .cut_above_ns = 18'000'000'000'000'000'000ULL,
          .deadline_s = 60.25,
          .max_age_s = 1e9,
          .min_grade = Grade::kB};
}

SubjectKey SomeKey(std::uint8_t number) {
  SubjectKey key;
  key.bytes.fill(number);
  return key;
}

Conditions SomeConditions(const std::string& host) {
  return {.hardware = {.device = DeviceKind::kCpu,
                       .hardware_class = "cpu:AuthenticAMD:25.1.1:avx2",
                       .model = "AMD EPYC",
                       .isa = "avx2",
                       .microcode = "0xa0011d5",
                       .clock_mhz = 2450.5,
                       .physical_cores = 1,
                       .logical_cores = 2,
                       .l1d_bytes = 32768,
                       .l2_bytes = 524288,
                       .l3_bytes = 33554432,
                       .memory_bytes = 8ULL << 30,
                       .peaks = {.flop_per_second = 254e9,
                                 .read_bytes_per_second = 15.5e9,
                                 .triad_bytes_per_second = 23e9},
                       .host = host,
                       .kernel = "Linux 6.1"},
          .compiler = {.llvm = "19.1.7", .tier = "general", .revision = "1"},
          .threads = 2,
          .cache = CacheState::kCold,
          .policy = "fixed15x60us",
          .isolation = "process+rlimits"};
}

Evaluation SomeMeasurement(std::uint8_t number) {
  Evaluation evaluation{
      .verdict = Measurement{.elapsed_ns = 5000.25 + number,
                             .elapsed_low_ns = 4990.5,
                             .elapsed_high_ns = 5010.125,
                             .elapsed_min_ns = 4980.0,
                             .elapsed_mean_ns = 5001.0 / 3,
                             .spread = 0.004,
                             .grade = Grade::kB,
                             .iterations_per_sample = 12,
                             .samples_ns = {5000.25, 4990.5, 5010.125, 1.0 / 3},
                             .sample_flags = {kSampleAccepted, kSampleContended, 0, 0},
                             .clock_before_mhz = 3689.5,
                             .clock_after_mhz = 3701.25},
      .subject = SomeKey(number),
      .flop_count = 524288,
      .conditions = SomeConditions(),
      .scratch_bytes = 4096,
      .code_hash = "0123abcd",
      .notes = {"L3 vectorize", "L1 unroll"}};
  for (const Stage stage : kStages) evaluation.stages[stage] = Nanos(100 + static_cast<int>(stage));
  return evaluation;
}

Evaluation SomeFailure(FailureCode code) {
  Evaluation evaluation = SomeMeasurement(200);
  evaluation.verdict =
      Failure{.code = code, .message = "it's \"bad\"", .action_index = 3, .signal = 11};
  return evaluation;
}

Evaluation BareFailure(FailureCode code) {
  return {.verdict = Failure{.code = code, .message = "no more is known"}};
}

JobsAccepted SomeBatch(std::uint64_t batch, std::vector<JobSpec> jobs) {
  JobsAccepted accepted{.batch = {batch},
                        .request_digest = std::string("\x00\xff digest", 9),
                        .accepted_at = WallTime(Nanos(1'700'000'000'123'456'789)),
                        .jobs = std::move(jobs)};
  accepted.client.bytes.fill(7);
  accepted.request_id = Uuid::Random();
  return accepted;
}

Outcome SomeOutcome(const Finish& finish, const JobSpec& spec, Evaluation evaluation) {
  return {.job = {{finish.batch}, finish.index},
          .sequence = finish.sequence,
          .source = finish.source,
          .attempts = 2,
          .worker = "worker-1",
          .finished_at = WallTime(Nanos(1'700'000'001'000'000'001)),
          .evaluation = std::move(evaluation),
          .benchmark = spec.source,
          .actions = spec.actions,
          .tag = spec.tag};
}

ResultKey KeyFor(const Evaluation& evaluation) {
  const Conditions& conditions = *evaluation.conditions;
  return {.subject = *evaluation.subject,
          .hardware_class = conditions.hardware.hardware_class,
          .compiler = conditions.compiler,
          .threads = conditions.threads,
          .cache = conditions.cache,
          .policy = conditions.policy};
}

}  // namespace loopfleet::storage
