#include "storage/postgres/best_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "common/base/enum_names.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/tree/key.h"
#include "storage/postgres/outcome_row.h"
#include "storage/postgres/postgres_schema.h"

namespace loopfleet::storage {
namespace {

constexpr std::size_t kMostPrograms = 65'536;

constexpr const char* kReadPlaces = R"sql(
SELECT p.n, encode(b.tree_key, 'hex'), b.elapsed_ns
FROM jsonb_to_recordset($1::jsonb) AS p (n integer, program bytea, hardware_class text,
                                         threads integer, cache text)
JOIN best b USING (program, hardware_class, threads, cache) ORDER BY p.n, b.elapsed_ns)sql";

constexpr const char* kEnter = R"sql(
INSERT INTO best SELECT f.* FROM jsonb_to_recordset($1::jsonb) AS f (program bytea,
  hardware_class text, threads integer, cache text, tree_key bytea, elapsed_ns double precision,
  worker text, finished_at timestamptz, coordinator integer, batch bigint, sequence bigint)
WHERE NOT EXISTS (SELECT FROM doubts d WHERE
  (d.tree_key, d.measured_at, d.worker) = (f.tree_key, f.finished_at, f.worker))
ON CONFLICT (program, hardware_class, threads, cache, tree_key) DO UPDATE SET
  elapsed_ns = excluded.elapsed_ns, worker = excluded.worker, finished_at = excluded.finished_at,
  coordinator = excluded.coordinator, batch = excluded.batch, sequence = excluded.sequence
WHERE excluded.finished_at > best.finished_at)sql";

// A tree whose newest figure is in doubt has none.
constexpr const char* kDropDoubted = R"sql(
DELETE FROM best b USING jsonb_to_recordset($1::jsonb) AS f (program bytea, hardware_class text,
  threads integer, cache text, tree_key bytea, worker text, finished_at timestamptz)
WHERE (b.program, b.hardware_class, b.threads, b.cache, b.tree_key) =
      (f.program, f.hardware_class, f.threads, f.cache, f.tree_key)
  AND b.finished_at < f.finished_at AND EXISTS (SELECT FROM doubts d WHERE
      (d.tree_key, d.measured_at, d.worker) = (f.tree_key, f.finished_at, f.worker)))sql";

constexpr const char* kTrim = R"sql(
DELETE FROM best b USING (
  SELECT b.*, row_number() OVER (PARTITION BY b.program, b.hardware_class, b.threads, b.cache
                                 ORDER BY b.elapsed_ns, b.tree_key) AS place
  FROM jsonb_to_recordset($1::jsonb) AS f (program bytea, hardware_class text, threads integer,
                                           cache text)
  JOIN best b USING (program, hardware_class, threads, cache)) ranked
WHERE ranked.place > $2 AND
  (b.program, b.hardware_class, b.threads, b.cache, b.tree_key) =
  (ranked.program, ranked.hardware_class, ranked.threads, ranked.cache, ranked.tree_key))sql";

// A place, and the newest figure of each tree that one step has of it.
using Place = std::tuple<ProgramKey, std::string, std::uint32_t, CacheState>;
using Newest = std::map<SubjectKey, const Outcome*>;
// What the place has.
struct Known {
  std::vector<std::string> trees;  // their keys
  double slowest_ns = 0;
};

Json PlaceJson(const Place& place) {
  const auto& [program, hardware_class, threads, cache] = place;
  return {{"program", PostgresBytes(program.bytes)},
          {"hardware_class", hardware_class},
          {"threads", threads},
          {"cache", EnumName(cache)}};
}

double ElapsedOf(const Outcome& outcome) { return outcome.evaluation.measurement().elapsed_ns; }

std::vector<Known> ReadPlaces(pqxx::work& work, const std::map<Place, Newest>& found) {
  Json places = Json::array();
  for (const auto& [place, newest] : found) {
    Json json = PlaceJson(place);
    json["n"] = places.size();
    places.push_back(std::move(json));
  }
  std::vector<Known> known(found.size());
  for (const auto& row : work.exec_params(kReadPlaces, PostgresJson(places))) {
    Known& place = known.at(row[0].as<std::size_t>());
    place.trees.push_back(row[1].as<std::string>());
    place.slowest_ns = row[2].as<double>();
  }
  return known;
}

// Of what was found, the figures that the place is to have: those of its trees, and the fastest
// others.
std::vector<const Outcome*> ToEnter(const Newest& found, const Known& known) {
  std::vector<const Outcome*> entering;
  std::vector<const Outcome*> others;
  const bool is_full = known.trees.size() >= BestRows::kMostOfPlace;
  for (const auto& [tree, outcome] : found) {
    if (std::ranges::find(known.trees, tree.ToString()) != known.trees.end()) {
      entering.push_back(outcome);
    } else if (!is_full || ElapsedOf(*outcome) < known.slowest_ns) {
      others.push_back(outcome);
    }
  }
  const std::size_t most = std::min(others.size(), BestRows::kMostOfPlace);
  std::ranges::partial_sort(others, others.begin() + static_cast<std::ptrdiff_t>(most), {},
                            [](const Outcome* outcome) { return ElapsedOf(*outcome); });
  entering.insert(entering.end(), others.begin(),
                  others.begin() + static_cast<std::ptrdiff_t>(most));
  return entering;
}

Json RowJson(const Place& place, int coordinator, const Outcome& outcome) {
  Json row = PlaceJson(place);
  row["tree_key"] = PostgresBytes(outcome.evaluation.subject->bytes);
  row["elapsed_ns"] = ElapsedOf(outcome);
  row["worker"] = PostgresText(outcome.worker);
  row["finished_at"] = PostgresTime(outcome.finished_at);
  row["coordinator"] = coordinator;
  row["batch"] = outcome.job.batch.value;
  row["sequence"] = outcome.sequence;
  return row;
}

void Enter(pqxx::work& work, const Json& rows, const Json& full_places) {
  if (!rows.empty()) {
    work.exec_params0(kEnter, PostgresJson(rows));
    work.exec_params0(kDropDoubted, PostgresJson(rows));
  }
  if (!full_places.empty()) {
    work.exec_params0(kTrim, PostgresJson(full_places), BestRows::kMostOfPlace);
  }
}

bool Counts(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  return outcome.source == OutcomeSource::kMeasured && evaluation.is_timed() &&
         !evaluation.same_code && evaluation.measurement().grade != Grade::kD;
}

}  // namespace

std::optional<ProgramKey> BestRows::ProgramOf(const looptree::Source& benchmark) {
  const ContentKey text =
      ContentKey::Of(std::visit([](const auto& source) { return source.text; }, benchmark));
  if (const auto known = programs_.find(text); known != programs_.end()) return known->second;
  std::optional<ProgramKey> program;
  if (const auto opened = looptree::OpenBenchmark(benchmark)) {
    program = looptree::ProgramKeyOf(opened->start.program());
  }
  if (programs_.size() == kMostPrograms) programs_.clear();
  return programs_[text] = program;
}

void BestRows::Note(pqxx::work& work, int coordinator, const std::vector<Outcome>& outcomes) {
  std::map<Place, Newest> found;  // in order, so that two mirrors lock rows in one order
  for (const Outcome& outcome : outcomes) {
    if (!Counts(outcome)) continue;
    const auto program = ProgramOf(outcome.benchmark);
    if (!program) continue;
    const Conditions& had = *outcome.evaluation.conditions;
    const Place place = {*program, PostgresText(had.hardware.hardware_class), had.threads,
                         had.cache};
    const Outcome*& newest = found[place][*outcome.evaluation.subject];
    if (newest == nullptr || outcome.finished_at > newest->finished_at) newest = &outcome;
  }
  if (found.empty()) return;
  const std::vector<Known> known = ReadPlaces(work, found);
  Json rows = Json::array();
  Json full_places = Json::array();
  auto there = known.begin();
  for (const auto& [place, newest] : found) {
    const auto entering = ToEnter(newest, *there);
    for (const Outcome* outcome : entering) rows.push_back(RowJson(place, coordinator, *outcome));
    if (!entering.empty() && there->trees.size() + entering.size() > kMostOfPlace) {
      full_places.push_back(PlaceJson(place));
    }
    ++there;
  }
  Enter(work, rows, full_places);
}

void BestRows::EnterFormer(pqxx::connection& connection) {
  while (EnterSomeFormer(connection)) {
  }
}

bool BestRows::EnterSomeFormer(pqxx::connection& connection) {
  pqxx::work work(connection);
  work.exec(fmt::format("SELECT pg_advisory_xact_lock({})", kSchemaLock));  // not two at a time
  if (work.exec1("SELECT to_regclass('former_best')")[0].is_null()) return false;
  const auto rows = work.exec(
      "WITH taken AS (DELETE FROM former_best WHERE ctid IN (SELECT ctid FROM former_best LIMIT "
      "1000) RETURNING *) "
      "SELECT o.benchmark, jsonb_build_object('hardware_class', b.hardware_class, "
      "'threads', b.threads, 'cache', b.cache, 'tree_key', o.tree_key, 'elapsed_ns', o.elapsed_ns, "
      "'worker', o.worker, 'finished_at', o.finished_at, 'coordinator', o.coordinator, "
      "'batch', o.batch, 'sequence', o.sequence) "
      "FROM taken b JOIN outcomes o USING (coordinator, batch, sequence, finished_at)");
  for (const auto& row : rows) {
    const auto text = row[0].as<std::string>();
    const bool is_uri = text.starts_with("benchmark://");
    const auto program = ProgramOf(is_uri ? looptree::Source(looptree::BenchmarkUri{text})
                                          : looptree::Source(looptree::IrText{text}));
    if (!program) continue;
    Json figure = Json::parse(row[1].as<std::string>());
    figure["program"] = PostgresBytes(program->bytes);
    const Json rows = Json::array({std::move(figure)});  // one alone: two may be of one tree
    Enter(work, rows, rows);
  }
  const bool is_last = work.exec1("SELECT count(*) FROM former_best")[0].as<std::int64_t>() == 0;
  if (is_last) work.exec0("DROP TABLE former_best");
  work.commit();
  return !is_last;
}

}  // namespace loopfleet::storage
