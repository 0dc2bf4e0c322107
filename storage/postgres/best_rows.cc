#include "storage/postgres/best_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
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

// LATERAL and OFFSET: each is one look into the primary key, whatever the planner thinks of sizes.
constexpr const char* kReadPlaces = R"sql(
SELECT p.n, encode(b.tree_key, 'hex'), b.elapsed_ns,
       (extract(epoch FROM b.finished_at) * 1000000)::bigint
FROM unnest($1::bytea[], $2::text[], $3::integer[], $4::text[]) WITH ORDINALITY
  AS p (program, hardware_class, threads, cache, n)
CROSS JOIN LATERAL (
  SELECT * FROM best b WHERE (b.program, b.hardware_class, b.threads, b.cache) =
                             (p.program, p.hardware_class, p.threads, p.cache) OFFSET 0) b
ORDER BY p.n, b.elapsed_ns, b.tree_key)sql";

constexpr const char* kReadDoubts = R"sql(
SELECT f.n, d.flagged_at = f.measured_at
FROM unnest($1::bytea[], $2::timestamptz[], $3::text[]) WITH ORDINALITY
  AS f (tree_key, measured_at, worker, n)
CROSS JOIN LATERAL (
  SELECT d.flagged_at FROM doubts d WHERE (d.tree_key, d.measured_at, d.worker) =
                             (f.tree_key, f.measured_at, f.worker) OFFSET 0) d)sql";

// By their places in the file: joined with the table itself, PostgreSQL reads all of it. Another
// mirror may have entered a newer figure of the tree.
constexpr const char* kRemove = R"sql(
DELETE FROM best WHERE ctid = ANY (ARRAY(
  SELECT b.ctid FROM unnest($1::bytea[], $2::text[], $3::integer[], $4::text[], $5::bytea[],
                            $6::timestamptz[])
    AS f (program, hardware_class, threads, cache, tree_key, finished_at)
  CROSS JOIN LATERAL (
    SELECT b.ctid FROM best b WHERE
      (b.program, b.hardware_class, b.threads, b.cache, b.tree_key) =
      (f.program, f.hardware_class, f.threads, f.cache, f.tree_key)
      AND b.finished_at <= f.finished_at OFFSET 0) b)))sql";

constexpr const char* kEnter = R"sql(
INSERT INTO best (program, hardware_class, threads, cache, tree_key, finished_at, elapsed_ns,
                  worker, coordinator, batch, sequence)
SELECT * FROM unnest($1::bytea[], $2::text[], $3::integer[], $4::text[], $5::bytea[],
                     $6::timestamptz[], $7::float8[], $8::text[], $9::integer[], $10::bigint[],
                     $11::bigint[])
ON CONFLICT (program, hardware_class, threads, cache, tree_key) DO UPDATE SET
  elapsed_ns = excluded.elapsed_ns, worker = excluded.worker, finished_at = excluded.finished_at,
  coordinator = excluded.coordinator, batch = excluded.batch, sequence = excluded.sequence
WHERE excluded.finished_at > best.finished_at)sql";

bool Counts(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  return outcome.source == OutcomeSource::kMeasured && evaluation.is_timed() &&
         !evaluation.same_code && evaluation.measurement().grade != Grade::kD;
}

}  // namespace

// Rows as the parameters of unnest(): an array for each column.
class BestRows::Rows {
 public:
  void Add(std::initializer_list<std::string> row) {
    columns_.resize(row.size());
    auto column = columns_.begin();
    for (const std::string& value : row) (column++)->push_back(value);
  }
  void Add(const Place& place) {
    const auto& [program, hardware_class, threads, cache] = place;
    Add({PostgresBytes(program.bytes), hardware_class, fmt::format("{}", threads),
         std::string(EnumName(cache))});
  }
  void Add(const Place& place, const Entry& entry) {
    const auto& [program, hardware_class, threads, cache] = place;
    Add({PostgresBytes(program.bytes), hardware_class, fmt::format("{}", threads),
         std::string(EnumName(cache)), PostgresBytes(entry.tree.bytes),
         PostgresTime(entry.finished_at)});
  }
  void Add(const Place& place, const Figure& figure) {
    const auto& [program, hardware_class, threads, cache] = place;
    const Entry& entry = figure.entry;
    Add({PostgresBytes(program.bytes), hardware_class, fmt::format("{}", threads),
         std::string(EnumName(cache)), PostgresBytes(entry.tree.bytes),
         PostgresTime(entry.finished_at), fmt::format("{}", entry.elapsed_ns), figure.worker,
         fmt::format("{}", figure.coordinator), fmt::format("{}", figure.batch),
         fmt::format("{}", figure.sequence)});
  }

  // Runs a statement about the rows, if there are any.
  pqxx::result Run(pqxx::work& work, const char* sql) const {
    if (columns_.empty()) return {};
    std::vector<std::string> arrays;
    for (const auto& column : columns_) arrays.push_back(PostgresList(column));
    return work.exec_params(sql, pqxx::prepare::make_dynamic_params(arrays));
  }

 private:
  std::vector<std::vector<std::string>> columns_;
};

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
  Found found;  // in order, so that two mirrors lock rows in one order
  for (const Outcome& outcome : outcomes) {
    if (!Counts(outcome)) continue;
    const auto program = ProgramOf(outcome.benchmark);
    if (!program) continue;
    const Conditions& had = *outcome.evaluation.conditions;
    const Place place = {*program, PostgresText(had.hardware.hardware_class), had.threads,
                         had.cache};
    const SubjectKey& tree = *outcome.evaluation.subject;
    const auto finished_at = std::chrono::floor<std::chrono::microseconds>(outcome.finished_at);
    Add(found, place,
        {.entry = {.tree = tree,
                   .elapsed_ns = outcome.evaluation.measurement().elapsed_ns,
                   .finished_at = finished_at},
         .worker = PostgresText(outcome.worker),
         .coordinator = coordinator,
         .batch = outcome.job.batch.value,
         .sequence = outcome.sequence});
  }
  Enter(work, found);
}

void BestRows::Add(Found& found, const Place& place, const Figure& figure) {
  std::vector<Figure>& figures = found[place][figure.entry.tree];
  const auto time = [](const Figure& one) { return one.entry.finished_at; };
  figures.insert(std::ranges::upper_bound(figures, time(figure), {}, time), figure);
}

void BestRows::ReadPlaces(pqxx::work& work, const Found& found) {
  const Instant now = clock_.Now();
  const bool is_old = now - remembers_since_ > kLongestMemory;
  if (is_old || places_.size() > kMostPlaces) Forget();
  if (places_.empty()) remembers_since_ = now;
  Rows unknown;
  std::vector<Entries*> reading;
  for (const auto& [place, by_tree] : found) {
    const auto [known, is_new] = places_.try_emplace(place);
    if (!is_new) continue;
    unknown.Add(place);
    reading.push_back(&known->second);
  }
  for (const auto& row : unknown.Run(work, kReadPlaces)) {
    reading.at(row[0].as<std::size_t>() - 1)
        ->push_back({.tree = SubjectKey::Parse(row[1].as<std::string>()).value(),
                     .elapsed_ns = row[2].as<double>(),
                     .finished_at = Moment(std::chrono::microseconds(row[3].as<std::int64_t>()))});
  }
}

std::vector<BestRows::Candidate> BestRows::CandidatesAmong(const Found& found) const {
  std::vector<Candidate> candidates;
  for (const auto& [place, by_tree] : found) {
    const Entries& there = places_.at(place);
    for (const auto& [tree, figures] : by_tree) {
      const auto same = std::ranges::find(there, tree, &Entry::tree);
      const auto counts = [&](const Figure& figure) {
        return same != there.end() ? figure.entry.finished_at > same->finished_at
                                   : there.size() < kMostOfPlace ||
                                         figure.entry.elapsed_ns < there.back().elapsed_ns;
      };
      if (std::ranges::none_of(figures, counts)) continue;
      for (const Figure& figure : figures) {
        candidates.push_back({.place = &place, .figure = &figure});
      }
    }
  }
  return candidates;
}

void BestRows::ReadDoubts(pqxx::work& work, std::vector<Candidate>& candidates) {
  Rows names;
  for (const Candidate& candidate : candidates) {
    const Figure& figure = *candidate.figure;
    names.Add({PostgresBytes(figure.entry.tree.bytes), PostgresTime(figure.entry.finished_at),
               figure.worker});
  }
  for (const auto& row : names.Run(work, kReadDoubts)) {
    Candidate& candidate = candidates.at(row[0].as<std::size_t>() - 1);
    candidate.is_in_doubt = true;
    candidate.was_never_trusted = row[1].as<bool>();
  }
}

void BestRows::Enter(pqxx::work& work, const Found& found) {
  if (found.empty()) return;
  ReadPlaces(work, found);
  std::vector<Candidate> candidates = CandidatesAmong(found);
  ReadDoubts(work, candidates);

  Rows leaving;
  Rows entering;
  for (auto next = candidates.begin(); next != candidates.end();) {
    const Place& place = *next->place;
    Entries& there = places_.at(place);
    const Entries former = there;
    std::map<SubjectKey, const Figure*> entered;
    for (; next != candidates.end() && next->place == &place; ++next) {
      if (next->was_never_trusted) continue;
      const Entry& entry = next->figure->entry;
      const auto same = std::ranges::find(there, entry.tree, &Entry::tree);
      if (same != there.end()) {
        if (entry.finished_at <= same->finished_at) continue;
        there.erase(same);
      }
      if (next->is_in_doubt) continue;  // a tree whose newest figure is in doubt has none
      there.insert(std::ranges::upper_bound(there, entry.elapsed_ns, {}, &Entry::elapsed_ns),
                   entry);
      entered[entry.tree] = next->figure;
    }
    if (there.size() > kMostOfPlace) there.resize(kMostOfPlace);
    for (const Entry& entry : former) {
      const bool stays = std::ranges::find(there, entry.tree, &Entry::tree) != there.end();
      if (!stays) leaving.Add(place, entry);
    }
    for (const Entry& entry : there) {
      if (const auto it = entered.find(entry.tree); it != entered.end()) {
        entering.Add(place, *it->second);
      }
    }
  }
  leaving.Run(work, kRemove);
  entering.Run(work, kEnter);
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
      "SELECT o.benchmark, b.hardware_class, b.threads, b.cache, encode(o.tree_key, 'hex'), "
      "o.elapsed_ns, (extract(epoch FROM o.finished_at) * 1000000)::bigint, o.worker, "
      "o.coordinator, o.batch, o.sequence "
      "FROM taken b JOIN outcomes o USING (coordinator, batch, sequence, finished_at)");
  Found found;
  for (const auto& row : rows) {
    const auto text = row[0].as<std::string>();
    const bool is_uri = text.starts_with("benchmark://");
    const auto program = ProgramOf(is_uri ? looptree::Source(looptree::BenchmarkUri{text})
                                          : looptree::Source(looptree::IrText{text}));
    if (!program) continue;
    const Place place = {*program, row[1].as<std::string>(), row[2].as<std::uint32_t>(),
                         ValueNamed<CacheState>(row[3].as<std::string>()).value()};
    const Figure figure = {
        .entry = {.tree = SubjectKey::Parse(row[4].as<std::string>()).value(),
                  .elapsed_ns = row[5].as<double>(),
                  .finished_at = Moment(std::chrono::microseconds(row[6].as<std::int64_t>()))},
        .worker = row[7].as<std::string>(),
        .coordinator = row[8].as<int>(),
        .batch = row[9].as<std::uint64_t>(),
        .sequence = row[10].as<std::uint64_t>()};
    Add(found, place, figure);
  }
  Enter(work, found);
  const bool is_last = work.exec1("SELECT count(*) FROM former_best")[0].as<std::int64_t>() == 0;
  if (is_last) work.exec0("DROP TABLE former_best");
  work.commit();
  return !is_last;
}

}  // namespace loopfleet::storage
