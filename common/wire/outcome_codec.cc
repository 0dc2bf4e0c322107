#include "common/wire/outcome_codec.h"

#include "common/wire/codec.h"
#include "common/wire/column.h"
#include "common/wire/evaluation_codec.h"
#include "common/wire/facts_codec.h"
#include "common/wire/job_codec.h"

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
// --------------------------------------------------------------------------------------

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
// --------------------------------------------------------------------------------------

void ReadEvaluationsOf(Columns::Reader reader, std::vector<Outcome>& rows) {
  auto evaluations = ReadEvaluations(reader.getEvaluations());
  rows.resize(evaluations.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].evaluation = std::move(evaluations[i]);
}

void ReadPlaces(BatchId batch, Columns::Reader reader, std::vector<Outcome>& rows) {
  const auto index = OneForEachRow(reader.getIndex(), RowCount(rows), "index");
  const auto sequence = OneForEachRow(reader.getSequence(), RowCount(rows), "sequence");
  const auto source = OneForEachRow(reader.getSource(), RowCount(rows), "source");
  const auto attempts = OneForEachRow(reader.getAttempts(), RowCount(rows), "attempts");
  const auto finished_at = OneForEachRow(reader.getFinishedAt(), RowCount(rows), "finishedAt");
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    rows[i].job = {.batch = batch, .index = index[i]};
    rows[i].sequence = sequence[i];
    rows[i].source = kSources.FromWire(static_cast<schema::OutcomeSource>(source[i]));
    rows[i].attempts = attempts[i];
    rows[i].finished_at = WallTimeOf(finished_at[i]);
  }
}

void ReadWorkers(Columns::Reader reader, std::vector<Outcome>& rows) {
  const auto table =
      ReadTexts(reader.getWorkerTable(), {.entries = rows.size(), .entry_bytes = kMaxFactBytes},
                "workerTable");
  const auto column = OneForEachRow(reader.getWorker(), RowCount(rows), "worker");
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (column[i] == 0) continue;
    if (column[i] > table.size()) {
      RefuseMalformed(fmt::format("row {} refers to worker {} of {}", i, column[i], table.size()));
    }
    rows[i].worker = table[column[i] - 1];
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

void ReadBenchmarks(Columns::Reader reader, std::vector<Outcome>& rows) {
  const auto table = ReadBenchmarkTable(reader, RowCount(rows));
  const auto column = OneForEachRow(reader.getBenchmark(), RowCount(rows), "benchmark");
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (column[i] >= table.size()) {
      RefuseMalformed(
          fmt::format("row {} refers to benchmark {} of {}", i, column[i], table.size()));
    }
    bytes += TextOfSource(table[column[i]]).size();
    if (bytes > kMaxPageSourceBytes) {
      RefuseMalformed(
          fmt::format("the rows' programs need more than {} bytes", kMaxPageSourceBytes));
    }
    rows[i].benchmark = table[column[i]];
  }
}

void ReadActionsOf(Columns::Reader reader, std::vector<Outcome>& rows) {
  constexpr std::size_t kMaxActions = looptree::Limits{}.actions;
  const auto actions = reader.getActions();
  const auto offsets =
      ReadOffsets(reader.getActionOffsets(), RowCount(rows), actions.size(), "actions");
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t count = offsets[i + 1] - offsets[i];
    if (count > kMaxActions) {
      RefuseMalformed(fmt::format("row {} has {} actions; at most {}", i, count, kMaxActions));
    }
    rows[i].actions.reserve(count);
    for (std::uint32_t k = 0; k < count; ++k) {
      rows[i].actions.push_back(ReadAction(actions[offsets[i] + k], k));
    }
  }
}

void ReadTags(Columns::Reader reader, std::vector<Outcome>& rows) {
  auto tags = ReadTextColumn(reader.getTag(), RowCount(rows), kMaxTagBytes, "tag");
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].tag = std::move(tags[i]);
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

std::vector<Outcome> ReadOutcomes(BatchId batch, Columns::Reader reader) {
  std::vector<Outcome> rows;
  ReadEvaluationsOf(reader, rows);
  ReadPlaces(batch, reader, rows);
  ReadWorkers(reader, rows);
  ReadBenchmarks(reader, rows);
  ReadActionsOf(reader, rows);
  ReadTags(reader, rows);
  return rows;
}

}  // namespace loopfleet::wire
