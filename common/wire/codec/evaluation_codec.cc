#include "common/wire/codec/evaluation_codec.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/wire/codec/column.h"
#include "common/wire/codec/facts_codec.h"
#include "common/wire/codec/observed_codec.h"
#include "common/wire/codec/utf8.h"

namespace loopfleet::wire {
namespace {

using Columns = schema::EvaluationColumns;
using Rows = std::span<const Evaluation* const>;

constexpr double kNotTimed = std::numeric_limits<double>::quiet_NaN();

constexpr EnumTable kGrades{"grade", std::array{std::pair{schema::Grade::A, Grade::kA},
                                                std::pair{schema::Grade::B, Grade::kB},
                                                std::pair{schema::Grade::C, Grade::kC}}};

std::uint32_t RowCount(Rows rows) { return static_cast<std::uint32_t>(rows.size()); }

std::uint16_t StatusOf(const Evaluation& evaluation) {
  if (evaluation.is_timed()) return kStatusTimed;
  return evaluation.ok() ? kStatusObserved : static_cast<std::uint16_t>(evaluation.failure().code);
}

// A number of a measurement, and its column.
struct NumberColumn {
  std::string_view name;
  double Measurement::* member;
  std::vector<double> EvaluationColumns::* column;
  capnp::List<double>::Reader (Columns::Reader::*get)() const;
  capnp::List<double>::Builder (Columns::Builder::*init)(unsigned);
};
constexpr NumberColumn kTimeColumns[] = {
    {"elapsed", &Measurement::elapsed_ns, &EvaluationColumns::elapsed_ns,
     &Columns::Reader::getElapsed, &Columns::Builder::initElapsed},
    {"elapsedLow", &Measurement::elapsed_low_ns, &EvaluationColumns::elapsed_low_ns,
     &Columns::Reader::getElapsedLow, &Columns::Builder::initElapsedLow},
    {"elapsedHigh", &Measurement::elapsed_high_ns, &EvaluationColumns::elapsed_high_ns,
     &Columns::Reader::getElapsedHigh, &Columns::Builder::initElapsedHigh},
    {"elapsedMin", &Measurement::elapsed_min_ns, &EvaluationColumns::elapsed_min_ns,
     &Columns::Reader::getElapsedMin, &Columns::Builder::initElapsedMin},
    {"elapsedMean", &Measurement::elapsed_mean_ns, &EvaluationColumns::elapsed_mean_ns,
     &Columns::Reader::getElapsedMean, &Columns::Builder::initElapsedMean},
    {"spread", &Measurement::spread, &EvaluationColumns::spread, &Columns::Reader::getSpread,
     &Columns::Builder::initSpread},
};

// Added after version 1.0. An older sender leaves them empty, which means 0 in every row.
constexpr NumberColumn kClockColumns[] = {
    {"clockBeforeMhz", &Measurement::clock_before_mhz, &EvaluationColumns::clock_before_mhz,
     &Columns::Reader::getClockBeforeMhz, &Columns::Builder::initClockBeforeMhz},
    {"clockAfterMhz", &Measurement::clock_after_mhz, &EvaluationColumns::clock_after_mhz,
     &Columns::Reader::getClockAfterMhz, &Columns::Builder::initClockAfterMhz},
};

struct StageColumn {
  std::string_view name;
  Stage stage;
  capnp::List<std::int64_t>::Reader (Columns::Reader::*get)() const;
  capnp::List<std::int64_t>::Builder (Columns::Builder::*init)(unsigned);
};
constexpr StageColumn kStageColumns[] = {
    {"queueNs", Stage::kQueue, &Columns::Reader::getQueueNs, &Columns::Builder::initQueueNs},
    {"replayNs", Stage::kReplay, &Columns::Reader::getReplayNs, &Columns::Builder::initReplayNs},
    {"compileNs", Stage::kCompile, &Columns::Reader::getCompileNs,
     &Columns::Builder::initCompileNs},
    {"verifyNs", Stage::kVerify, &Columns::Reader::getVerifyNs, &Columns::Builder::initVerifyNs},
    {"measureNs", Stage::kMeasure, &Columns::Reader::getMeasureNs,
     &Columns::Builder::initMeasureNs},
    {"storeNs", Stage::kStore, &Columns::Reader::getStoreNs, &Columns::Builder::initStoreNs},
};
static_assert(std::size(kStageColumns) == kStages.size(), "every stage has its column");

struct HostHash {
  std::size_t operator()(const Conditions& conditions) const {
    return std::hash<std::string>{}(conditions.hardware.host);
  }
};

// ---- writing

void WriteVerdicts(Rows rows, Columns::Builder builder) {
  auto status = builder.initStatus(RowCount(rows));
  auto grade = builder.initGrade(RowCount(rows));
  auto iterations = builder.initIterationsPerSample(RowCount(rows));
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    status.set(i, StatusOf(*rows[i]));
    if (!rows[i]->is_timed()) continue;
    const Grade said = std::min(rows[i]->measurement().grade, Grade::kC);  // D: WriteGradeD
    grade.set(i, static_cast<std::uint8_t>(kGrades.ToWire(said)));
    iterations.set(i, rows[i]->measurement().iterations_per_sample);
  }
  for (const NumberColumn& column : kTimeColumns) {
    auto list = (builder.*column.init)(RowCount(rows));
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      list.set(i, rows[i]->is_timed() ? rows[i]->measurement().*column.member : kNotTimed);
    }
  }
}

// The numbers of the rows for which `holds`.
template <class Holds>
std::vector<std::uint32_t> RowsWhere(Rows rows, Holds holds) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (holds(*rows[i])) numbers.push_back(i);
  }
  return numbers;
}

void WriteMarks(Rows rows, Columns::Builder builder) {
  const auto same_code =
      RowsWhere(rows, [](const Evaluation& row) { return row.is_timed() && row.same_code; });
  builder.setSameCode(kj::arrayPtr(same_code.data(), same_code.size()));
  const auto grade_d = RowsWhere(rows, [](const Evaluation& row) {
    return row.is_timed() && row.measurement().grade == Grade::kD;
  });
  builder.setGradeD(kj::arrayPtr(grade_d.data(), grade_d.size()));
}

void WriteSamples(Rows rows, Columns::Builder builder) {
  auto offsets = builder.initSampleOffsets(RowCount(rows) + 1);
  std::uint32_t total = 0;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->is_timed()) {
      const Measurement& measurement = rows[i]->measurement();
      LF_CHECK(measurement.samples_ns.size() <= kMaxSamples, "{} samples",
               measurement.samples_ns.size());
      LF_CHECK(measurement.sample_flags.size() == measurement.samples_ns.size(),
               "{} flags for {} samples", measurement.sample_flags.size(),
               measurement.samples_ns.size());
      total += static_cast<std::uint32_t>(measurement.samples_ns.size());
    }
    offsets.set(i + 1, total);
  }
  auto samples = builder.initSamples(total);
  auto flags = builder.initSampleFlags(total);
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (!rows[i]->is_timed()) continue;
    const Measurement& measurement = rows[i]->measurement();
    for (std::uint32_t k = 0; k < measurement.samples_ns.size(); ++k) {
      samples.set(offsets[i] + k, measurement.samples_ns[k]);
      flags[offsets[i] + k] = measurement.sample_flags[k];
    }
  }
}

void WriteKernels(Rows rows, Columns::Builder builder) {
  auto known = builder.initTreeKeyKnown(RowCount(rows));
  auto keys = builder.initTreeKeys(RowCount(rows) * unsigned{sizeof(SubjectKey::bytes)});
  auto flop_count = builder.initFlopCount(RowCount(rows));
  auto scratch_bytes = builder.initScratchBytes(RowCount(rows));
  std::vector<std::string> hashes;
  std::vector<const std::string*> hash_pointers;
  hashes.reserve(rows.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (const auto& key = rows[i]->subject) {
      known.set(i, true);
      std::copy(key->bytes.begin(), key->bytes.end(), keys.begin() + i * key->bytes.size());
    }
    flop_count.set(i, rows[i]->flop_count);
    scratch_bytes.set(i, rows[i]->scratch_bytes);
    hashes.push_back(ToUtf8(rows[i]->code_hash, kMaxCodeHashBytes));
    hash_pointers.push_back(&hashes.back());
  }
  WriteTextColumn(hash_pointers, builder.initCodeHash());
}

void WriteConditionsTable(Rows rows, Columns::Builder builder) {
  DistinctValues<Conditions, HostHash> distinct;
  auto column = builder.initConditions(RowCount(rows));
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->conditions) column.set(i, distinct.IndexOf(*rows[i]->conditions) + 1);
  }
  auto table = builder.initConditionsTable(static_cast<unsigned>(distinct.values().size()));
  for (std::uint32_t i = 0; i < table.size(); ++i) WriteConditions(*distinct.values()[i], table[i]);
}

void WriteStages(Rows rows, Columns::Builder builder) {
  for (const StageColumn& column : kStageColumns) {
    auto list = (builder.*column.init)(RowCount(rows));
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      list.set(i, rows[i]->stages[column.stage].count());
    }
  }
}

void WriteClocks(Rows rows, Columns::Builder builder) {
  for (const NumberColumn& column : kClockColumns) {
    auto list = (builder.*column.init)(RowCount(rows));
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      if (rows[i]->is_timed()) list.set(i, rows[i]->measurement().*column.member);
    }
  }
}

void WriteDeviceStates(Rows rows, Columns::Builder builder) {
  const auto has_one = [](const Evaluation* row) {
    return row->is_timed() && row->measurement().device.has_value();
  };
  auto list = builder.initDeviceStates(
      static_cast<unsigned>(std::count_if(rows.begin(), rows.end(), has_one)));
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (!has_one(rows[i])) continue;
    const DeviceState& state = *rows[i]->measurement().device;
    auto entry = list[next++];
    entry.setRow(i);
    entry.setTemperatureC(state.temperature_c);
    entry.setPowerW(state.power_w);
    entry.setMemoryClockMhz(state.memory_clock_mhz);
    entry.setThrottleReasons(state.throttle_reasons);
  }
}

void WriteThinned(Rows rows, Columns::Builder builder) {
  const auto is_thinned = [](const Evaluation* row) {
    return row->is_timed() && row->measurement().thinned.has_value();
  };
  auto list = builder.initThinned(
      static_cast<unsigned>(std::count_if(rows.begin(), rows.end(), is_thinned)));
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (!is_thinned(rows[i])) continue;
    const Thinned& thinned = *rows[i]->measurement().thinned;
    auto entry = list[next++];
    entry.setRow(i);
    entry.setSamplesBefore(thinned.samples_before);
    entry.setAcceptedBefore(thinned.accepted_before);
  }
}

void WriteFailures(Rows rows, Columns::Builder builder) {
  const auto failed = std::count_if(rows.begin(), rows.end(), [](auto* row) { return !row->ok(); });
  auto list = builder.initFailures(static_cast<unsigned>(failed));
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->ok()) continue;
    list[next].setRow(i);
    WriteFailure(rows[i]->failure(), list[next].initFailure());
    ++next;
  }
}

void WriteObserved(Rows rows, Columns::Builder builder) {
  const auto numbers =
      RowsWhere(rows, [](const Evaluation& row) { return row.ok() && !row.is_timed(); });
  if (numbers.empty()) return;
  auto list = builder.initObserved(static_cast<unsigned>(numbers.size()));
  for (std::uint32_t k = 0; k < numbers.size(); ++k) {
    const Observed& observed = rows[numbers[k]]->observed();
    list[k].setRow(numbers[k]);
    WriteObservedValues(observed,
                        list[k].initValues(static_cast<unsigned>(observed.values.size())));
  }
}

void WriteNoEffect(Rows rows, Columns::Builder builder) {
  const auto noted =
      std::count_if(rows.begin(), rows.end(), [](auto* row) { return !row->notes.empty(); });
  auto list = builder.initNoEffect(static_cast<unsigned>(noted));
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const auto& notes = rows[i]->notes;
    if (notes.empty()) continue;
    LF_CHECK(notes.size() <= kMaxNotes, "{} annotations without effect", notes.size());
    list[next].setRow(i);
    auto texts = list[next].initNotes(static_cast<unsigned>(notes.size()));
    for (std::uint32_t k = 0; k < notes.size(); ++k) {
      texts.set(k, TextOf(ToUtf8(notes[k], kMaxNoteBytes)));
    }
    ++next;
  }
}

// ---- reading

// All entries of a list; refuses it unless it has one for each row.
template <class T, class List>
std::vector<T> ReadColumn(List list, std::uint32_t rows, std::string_view name) {
  return VectorOf<T>(OneForEachRow(list, rows, name));
}

void ReadStatus(Columns::Reader reader, EvaluationColumns& columns) {
  columns.status = ReadColumn<std::uint16_t>(reader.getStatus(), reader.getRows(), "status");
  for (const std::uint16_t status : columns.status) {
    if (status != kStatusTimed && status != kStatusObserved) ReadFailureCode(status);
  }
}

void ReadTimes(Columns::Reader reader, EvaluationColumns& columns) {
  for (const NumberColumn& each : kTimeColumns) {
    auto& column = columns.*each.column;
    column = ReadColumn<double>((reader.*each.get)(), reader.getRows(), each.name);
    for (std::uint32_t i = 0; i < columns.rows(); ++i) {
      if (columns.is_timed(i)) {
        ReadFinite(column[i], each.name);
      } else if (!std::isnan(column[i])) {
        RefuseMalformed(fmt::format("row {} was not timed and has a value in '{}'", i, each.name));
      }
    }
  }
  for (std::uint32_t i = 0; i < columns.rows(); ++i) {
    if (columns.is_timed(i) && (columns.elapsed_ns[i] <= 0 || columns.elapsed_min_ns[i] <= 0)) {
      RefuseMalformed(fmt::format("row {} was measured and has no time above 0", i));
    }
  }
}

void ReadClocks(Columns::Reader reader, EvaluationColumns& columns) {
  for (const NumberColumn& each : kClockColumns) {
    auto& column = columns.*each.column;
    column.assign(columns.rows(), 0.0);
    const auto list = (reader.*each.get)();
    if (list.size() == 0) continue;  // from an older sender
    OneForEachRow(list, reader.getRows(), each.name);
    for (std::uint32_t i = 0; i < columns.rows(); ++i) {
      if (columns.is_timed(i)) column[i] = ReadAmount(list[i], each.name);
    }
  }
}

void ReadGrades(Columns::Reader reader, EvaluationColumns& columns) {
  const auto grade = OneForEachRow(reader.getGrade(), reader.getRows(), "grade");
  const auto iterations =
      OneForEachRow(reader.getIterationsPerSample(), reader.getRows(), "iterationsPerSample");
  columns.grade.assign(columns.rows(), Grade::kA);
  columns.iterations_per_sample.assign(columns.rows(), 0);
  for (std::uint32_t i = 0; i < columns.rows(); ++i) {
    if (!columns.is_timed(i)) continue;
    columns.grade[i] = kGrades.FromWire(static_cast<schema::Grade>(grade[i]));
    columns.iterations_per_sample[i] = iterations[i];
  }
}

void ReadSamples(Columns::Reader reader, EvaluationColumns& columns) {
  const auto samples = reader.getSamples();
  const auto flags = reader.getSampleFlags();
  const auto offsets =
      ReadOffsets(reader.getSampleOffsets(), reader.getRows(), samples.size(), "samples");
  OneForEachRow(flags, samples.size(), "sampleFlags");
  columns.sample_offsets = VectorOf<std::uint32_t>(offsets);
  for (std::uint32_t i = 0; i < columns.rows(); ++i) {
    const std::uint32_t count = offsets[i + 1] - offsets[i];
    if (count == 0) continue;
    if (!columns.is_timed(i))
      RefuseMalformed(fmt::format("row {} was not timed and has samples", i));
    if (count > kMaxSamples) {
      RefuseMalformed(fmt::format("row {} has {} samples; at most {}", i, count, kMaxSamples));
    }
  }
  columns.samples_ns = VectorOf<double>(samples);
  for (const double sample : columns.samples_ns) ReadFinite(sample, "samples");
  columns.sample_flags.assign(flags.begin(), flags.end());
}

void ReadKernels(Columns::Reader reader, EvaluationColumns& columns) {
  constexpr std::uint32_t kKeyBytes = sizeof(SubjectKey::bytes);
  const std::uint32_t rows = reader.getRows();
  const auto keys = OneForEachRow(reader.getTreeKeys(), rows * kKeyBytes, "treeKeys");
  const auto known = OneForEachRow(reader.getTreeKeyKnown(), rows, "treeKeyKnown");
  columns.subject_known.resize(rows);
  columns.subjects.resize(rows);
  for (std::uint32_t i = 0; i < rows; ++i) {
    columns.subject_known[i] = known[i];
    if (!known[i]) continue;
    std::copy_n(keys.begin() + i * kKeyBytes, kKeyBytes, columns.subjects[i].bytes.begin());
  }
  columns.flop_count = ReadColumn<std::uint64_t>(reader.getFlopCount(), rows, "flopCount");
  columns.scratch_bytes = ReadColumn<std::uint64_t>(reader.getScratchBytes(), rows, "scratchBytes");
  columns.code_hash = ReadTextColumn(reader.getCodeHash(), rows, kMaxCodeHashBytes, "codeHash");
}

void ReadConditionsTable(Columns::Reader reader, EvaluationColumns& columns) {
  auto& table = columns.conditions_table;
  const auto wire_table = Bounded(reader.getConditionsTable(), reader.getRows(), "conditionsTable");
  for (const auto entry : wire_table) table.push_back(ReadConditions(entry));
  columns.conditions =
      ReadColumn<std::uint32_t>(reader.getConditions(), reader.getRows(), "conditions");
  for (std::uint32_t i = 0; i < columns.rows(); ++i) {
    if (columns.conditions[i] > table.size()) {
      RefuseMalformed(fmt::format("row {} refers to conditions {} of {}", i, columns.conditions[i],
                                  table.size()));
    }
  }
}

void ReadStages(Columns::Reader reader, EvaluationColumns& columns) {
  columns.stages.resize(columns.rows());
  for (const StageColumn& each : kStageColumns) {
    const auto list = OneForEachRow((reader.*each.get)(), reader.getRows(), each.name);
    for (std::uint32_t i = 0; i < columns.rows(); ++i) {
      if (list[i] < 0) RefuseMalformed(fmt::format("row {} of '{}' is below 0", i, each.name));
      columns.stages[i][each.stage] = Nanos(list[i]);
    }
  }
}

void ReadFailures(Columns::Reader reader, EvaluationColumns& columns) {
  const auto list = reader.getFailures();
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < columns.rows(); ++i) {
    if (columns.ok(i)) continue;
    if (next >= list.size() || list[next].getRow() != i) {
      RefuseMalformed(fmt::format("row {} failed and has no failure", i));
    }
    Failure failure = ReadFailure(list[next++].getFailure());
    if (static_cast<std::uint16_t>(failure.code) != columns.status[i]) {
      RefuseMalformed(fmt::format("row {} has a status and a failure that differ", i));
    }
    columns.failures.emplace_back(i, std::move(failure));
  }
  if (next != list.size()) RefuseMalformed("there are more failures than failed rows");
}

void ReadObserved(Columns::Reader reader, EvaluationColumns& columns) {
  const auto list = reader.getObserved();
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < columns.rows(); ++i) {
    if (!columns.ok(i) || columns.is_timed(i)) continue;
    if (next >= list.size() || list[next].getRow() != i) {
      RefuseMalformed(fmt::format("row {} was observed and has no values", i));
    }
    columns.observed.emplace_back(i, ReadObservedValues(list[next++].getValues()));
  }
  if (next != list.size()) RefuseMalformed("there are more observed values than observed rows");
}

void ReadDeviceStates(Columns::Reader reader, EvaluationColumns& columns) {
  std::int64_t last = -1;
  for (const auto entry : reader.getDeviceStates()) {
    const std::uint32_t row = entry.getRow();
    if (row >= columns.rows() || std::int64_t{row} <= last) {
      RefuseMalformed("rows of 'deviceStates' do not ascend within the rows");
    }
    last = row;
    if (!columns.is_timed(row)) {
      RefuseMalformed(fmt::format("row {} was not timed and has a state of its device", row));
    }
    columns.device_states.emplace_back(
        row,
        DeviceState{.temperature_c = ReadAmount(entry.getTemperatureC(), "temperatureC"),
                    .power_w = ReadAmount(entry.getPowerW(), "powerW"),
                    .memory_clock_mhz = ReadAmount(entry.getMemoryClockMhz(), "memoryClockMhz"),
                    .throttle_reasons = entry.getThrottleReasons()});
  }
}

void ReadThinned(Columns::Reader reader, EvaluationColumns& columns) {
  std::int64_t last = -1;
  for (const auto entry : reader.getThinned()) {
    const std::uint32_t row = entry.getRow();
    if (row >= columns.rows() || std::int64_t{row} <= last) {
      RefuseMalformed("rows of 'thinned' do not ascend within the rows");
    }
    last = row;
    if (!columns.is_timed(row))
      RefuseMalformed(fmt::format("row {} was not timed and has samples", row));
    const Thinned thinned{.samples_before = entry.getSamplesBefore(),
                          .accepted_before = entry.getAcceptedBefore()};
    const std::uint32_t left = columns.sample_offsets[row + 1] - columns.sample_offsets[row];
    if (thinned.samples_before <= left || thinned.samples_before > kMaxSamples ||
        thinned.accepted_before > thinned.samples_before) {
      RefuseMalformed(fmt::format("row {} has {} samples of {}, {} of them accepted", row, left,
                                  thinned.samples_before, thinned.accepted_before));
    }
    columns.thinned.emplace_back(row, thinned);
  }
}

// Calls `mark` for each row of a list that has to ascend within the measured rows.
template <class Mark>
void ReadMarks(capnp::List<std::uint32_t>::Reader list, const EvaluationColumns& columns,
               std::string_view name, Mark mark) {
  std::int64_t last = -1;
  for (const std::uint32_t row : list) {
    if (row >= columns.rows() || std::int64_t{row} <= last || !columns.is_timed(row)) {
      RefuseMalformed(fmt::format("rows of '{}' do not ascend within the measured rows", name));
    }
    last = row;
    mark(row);
  }
}

void ReadMarks(Columns::Reader reader, EvaluationColumns& columns) {
  columns.same_code.assign(columns.rows(), false);
  ReadMarks(reader.getSameCode(), columns, "sameCode",
            [&](std::uint32_t row) { columns.same_code[row] = true; });
  ReadMarks(reader.getGradeD(), columns, "gradeD",
            [&](std::uint32_t row) { columns.grade[row] = Grade::kD; });
}

void ReadNoEffect(Columns::Reader reader, EvaluationColumns& columns) {
  std::int64_t last = -1;
  for (const auto entry : reader.getNoEffect()) {
    if (entry.getRow() >= columns.rows() || std::int64_t{entry.getRow()} <= last) {
      RefuseMalformed("rows of 'noEffect' do not ascend within the rows");
    }
    last = entry.getRow();
    columns.notes.emplace_back(
        entry.getRow(),
        ReadTexts(entry.getNotes(), {.entries = kMaxNotes, .entry_bytes = kMaxNoteBytes},
                  "noEffect"));
  }
}

}  // namespace

void WriteEvaluations(Rows rows, Columns::Builder builder) {
  LF_CHECK(rows.size() <= kMaxOutcomesPerPage, "{} rows", rows.size());
  builder.setRows(RowCount(rows));
  WriteVerdicts(rows, builder);
  WriteSamples(rows, builder);
  WriteKernels(rows, builder);
  WriteConditionsTable(rows, builder);
  WriteStages(rows, builder);
  WriteClocks(rows, builder);
  WriteFailures(rows, builder);
  WriteObserved(rows, builder);
  WriteNoEffect(rows, builder);
  WriteDeviceStates(rows, builder);
  WriteThinned(rows, builder);
  WriteMarks(rows, builder);
}

EvaluationColumns ReadEvaluationColumns(Columns::Reader reader) {
  if (reader.getRows() > kMaxOutcomesPerPage) {
    RefuseMalformed(fmt::format("{} rows; at most {}", reader.getRows(), kMaxOutcomesPerPage));
  }
  EvaluationColumns columns;
  ReadStatus(reader, columns);
  ReadTimes(reader, columns);
  ReadGrades(reader, columns);
  ReadSamples(reader, columns);
  ReadKernels(reader, columns);
  ReadConditionsTable(reader, columns);
  ReadStages(reader, columns);
  ReadClocks(reader, columns);
  ReadMarks(reader, columns);
  ReadFailures(reader, columns);
  ReadObserved(reader, columns);
  ReadNoEffect(reader, columns);
  ReadDeviceStates(reader, columns);
  ReadThinned(reader, columns);
  return columns;
}

std::vector<Evaluation> ReadEvaluations(Columns::Reader reader) {
  const EvaluationColumns columns = ReadEvaluationColumns(reader);
  std::vector<Evaluation> rows;
  rows.reserve(columns.rows());
  for (std::uint32_t i = 0; i < columns.rows(); ++i) rows.push_back(columns.Row(i));
  return rows;
}

}  // namespace loopfleet::wire
