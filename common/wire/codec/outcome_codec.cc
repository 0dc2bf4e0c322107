#include "common/wire/codec/outcome_codec.h"

#include "common/wire/codec/codec.h"
#include "common/wire/codec/column.h"
#include "common/wire/codec/evaluation_codec.h"
#include "common/wire/codec/facts_codec.h"
#include "common/wire/codec/job_codec.h"

namespace loopfleet::wire {
namespace {

using Columns = schema::OutcomeColumns;
using Rows = std::span<const Outcome>;

constexpr EnumTable kSources{
    "outcome source",
    std::array{std::pair{schema::OutcomeSource::MEASURED, OutcomeSource::kMeasured},
               std::pair{schema::OutcomeSource::STORED, OutcomeSource::kStored},
               std::pair{schema::OutcomeSource::COALESCED, OutcomeSource::kCoalesced}}};

std::uint32_t RowCount(Rows rows) { return static_cast<std::uint32_t>(rows.size()); }

std::string_view TextOfSource(const looptree::Source& source) {
  return std::visit([](const auto& kind) { return std::string_view(kind.text); }, source);
}

struct SourceHash {
  std::size_t operator()(const looptree::Source& source) const {
    return std::hash<std::string_view>{}(TextOfSource(source));
  }
};

// ---- writing

void WriteEvaluationsOf(Rows rows, Columns::Builder builder) {
  std::vector<const Evaluation*> evaluations;
  evaluations.reserve(rows.size());
  for (const Outcome& row : rows) evaluations.push_back(&row.evaluation);
  WriteEvaluations(evaluations, builder.initEvaluations());
}

void WritePlaces(Rows rows, Columns::Builder builder) {
  auto index = builder.initIndex(RowCount(rows));
  auto sequence = builder.initSequence(RowCount(rows));
  auto source = builder.initSource(RowCount(rows));
  auto attempts = builder.initAttempts(RowCount(rows));
  auto finished_at = builder.initFinishedAt(RowCount(rows));
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    index.set(i, rows[i].job.index);
    sequence.set(i, rows[i].sequence);
    source.set(i, static_cast<std::uint8_t>(kSources.ToWire(rows[i].source)));
    attempts.set(i, rows[i].attempts);
    finished_at.set(i, NanosOf(rows[i].finished_at));
  }
}

void WriteWorkers(Rows rows, Columns::Builder builder) {
  DistinctValues<std::string> distinct;
  auto column = builder.initWorker(RowCount(rows));
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].worker.empty()) column.set(i, distinct.IndexOf(rows[i].worker) + 1);
  }
  auto table = builder.initWorkerTable(static_cast<unsigned>(distinct.values().size()));
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    table.set(i, TextOf(FactText(*distinct.values()[i])));
  }
}

void WriteBenchmarks(Rows rows, Columns::Builder builder) {
  DistinctValues<looptree::Source, SourceHash> distinct;
  auto column = builder.initBenchmark(RowCount(rows));
  for (std::uint32_t i = 0; i < rows.size(); ++i)
    column.set(i, distinct.IndexOf(rows[i].benchmark));
  auto table = builder.initBenchmarkTable(static_cast<unsigned>(distinct.values().size()));
  for (std::uint32_t i = 0; i < table.size(); ++i) WriteSource(*distinct.values()[i], table[i]);
}

void WriteActionsOf(Rows rows, Columns::Builder builder) {
  auto offsets = builder.initActionOffsets(RowCount(rows) + 1);
  std::uint32_t total = 0;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    total += static_cast<std::uint32_t>(rows[i].actions.size());
    offsets.set(i + 1, total);
  }
  auto actions = builder.initActions(total);
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    WriteActions(rows[i].actions, actions, offsets[i]);
  }
}

void WriteTags(Rows rows, Columns::Builder builder) {
  std::vector<const std::string*> tags;
  tags.reserve(rows.size());
  for (const Outcome& row : rows) tags.push_back(&row.tag);
  WriteTextColumn(tags, builder.initTag());
}

// ---- reading

void ReadPlaces(Columns::Reader reader, OutcomeColumns& columns) {
  const std::uint32_t rows = columns.rows();
  const auto index = OneForEachRow(reader.getIndex(), rows, "index");
  const auto sequence = OneForEachRow(reader.getSequence(), rows, "sequence");
  const auto source = OneForEachRow(reader.getSource(), rows, "source");
  const auto attempts = OneForEachRow(reader.getAttempts(), rows, "attempts");
  const auto finished_at = OneForEachRow(reader.getFinishedAt(), rows, "finishedAt");
  columns.index = VectorOf<std::uint32_t>(index);
  columns.sequence = VectorOf<std::uint64_t>(sequence);
  columns.attempts = VectorOf<std::uint32_t>(attempts);
  columns.source.reserve(rows);
  columns.finished_at.reserve(rows);
  for (std::uint32_t i = 0; i < rows; ++i) {
    columns.source.push_back(kSources.FromWire(static_cast<schema::OutcomeSource>(source[i])));
    columns.finished_at.push_back(WallTimeOf(finished_at[i]));
  }
}

void ReadWorkers(Columns::Reader reader, OutcomeColumns& columns) {
  columns.worker_table =
      ReadTexts(reader.getWorkerTable(), {.entries = columns.rows(), .entry_bytes = kMaxFactBytes},
                "workerTable");
  const auto column = OneForEachRow(reader.getWorker(), columns.rows(), "worker");
  columns.worker = VectorOf<std::uint32_t>(column);
  for (std::uint32_t i = 0; i < columns.rows(); ++i) {
    if (columns.worker[i] > columns.worker_table.size()) {
      RefuseMalformed(fmt::format("row {} refers to worker {} of {}", i, columns.worker[i],
                                  columns.worker_table.size()));
    }
  }
}

std::vector<looptree::Source> ReadBenchmarkTable(Columns::Reader reader, std::uint32_t rows) {
  std::vector<looptree::Source> table;
  for (const auto entry : Bounded(reader.getBenchmarkTable(), rows, "benchmarkTable")) {
    table.push_back(ReadSource(entry));
    // The table may be shared, so it is checked once for each entry, not for each row.
    if (auto refusal = OutOfBounds(JobSpec{.source = table.back()})) {
      throw Refusal{*std::move(refusal)};
    }
  }
  return table;
}

void ReadBenchmarks(Columns::Reader reader, OutcomeColumns& columns) {
  columns.benchmark_table = ReadBenchmarkTable(reader, columns.rows());
  const auto& table = columns.benchmark_table;
  const auto column = OneForEachRow(reader.getBenchmark(), columns.rows(), "benchmark");
  columns.benchmark = VectorOf<std::uint32_t>(column);
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < columns.rows(); ++i) {
    if (columns.benchmark[i] >= table.size()) {
      RefuseMalformed(fmt::format("row {} refers to benchmark {} of {}", i, columns.benchmark[i],
                                  table.size()));
    }
    bytes += TextOfSource(columns.benchmark_of(i)).size();
    if (bytes > kMaxPageSourceBytes) {
      RefuseMalformed(
          fmt::format("the rows' programs need more than {} bytes", kMaxPageSourceBytes));
    }
  }
}

void ReadActionsOf(Columns::Reader reader, OutcomeColumns& columns) {
  constexpr std::size_t kMaxActions = looptree::Limits{}.actions;
  const auto actions = reader.getActions();
  const auto offsets =
      ReadOffsets(reader.getActionOffsets(), columns.rows(), actions.size(), "actions");
  columns.action_offsets = VectorOf<std::uint32_t>(offsets);
  columns.actions.reserve(actions.size());
  for (std::uint32_t i = 0; i < columns.rows(); ++i) {
    const std::uint32_t count = offsets[i + 1] - offsets[i];
    if (count > kMaxActions) {
      RefuseMalformed(fmt::format("row {} has {} actions; at most {}", i, count, kMaxActions));
    }
    ReadActions(actions, offsets[i], count, columns.actions);
  }
}

}  // namespace

void WriteOutcomes(Rows rows, Columns::Builder builder) {
  WriteEvaluationsOf(rows, builder);
  WritePlaces(rows, builder);
  WriteWorkers(rows, builder);
  WriteBenchmarks(rows, builder);
  WriteActionsOf(rows, builder);
  WriteTags(rows, builder);
}

OutcomeColumns ReadOutcomeColumns(BatchId batch, Columns::Reader reader) {
  OutcomeColumns columns{.batch = batch,
                         .evaluations = ReadEvaluationColumns(reader.getEvaluations())};
  ReadPlaces(reader, columns);
  ReadWorkers(reader, columns);
  ReadBenchmarks(reader, columns);
  ReadActionsOf(reader, columns);
  columns.tag = ReadTextColumn(reader.getTag(), columns.rows(), kMaxTagBytes, "tag");
  return columns;
}

std::vector<Outcome> ReadOutcomes(BatchId batch, Columns::Reader reader) {
  const OutcomeColumns columns = ReadOutcomeColumns(batch, reader);
  std::vector<Outcome> rows;
  rows.reserve(columns.rows());
  for (std::uint32_t i = 0; i < columns.rows(); ++i) rows.push_back(columns.Row(i));
  return rows;
}

}  // namespace loopfleet::wire
