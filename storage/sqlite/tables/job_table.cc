#include "storage/sqlite/tables/job_table.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/enum_names.h"
#include "storage/sqlite/damage.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/tables/job_text.h"

namespace loopfleet::storage {
namespace {

// Reads the columns of version 3; all NULL in a row of an earlier version.
Result<std::optional<ReplayResult>> ReadReplayed(Query& row, JobId job) {
  ReplayResult replayed;
  const auto key = row.Blob();
  const bool is_known = key.size() == replayed.subject.bytes.size();
  if (is_known) std::memcpy(replayed.subject.bytes.data(), key.data(), key.size());
  const auto placement = ValueNamed<Placement>(row.Text());
  if (row.IsNull() && key.empty() && !placement) return std::nullopt;
  if (!row.ChecksumMatches()) return Damaged("jobs", job);
  if (!is_known || !placement) return std::nullopt;
  replayed.placement = *placement;
  return replayed;
}

// Reads the columns of `jobs` that follow batch and idx.
Result<UnfinishedJob> ReadRow(Query& row, JobId id) {
  UnfinishedJob job{.job = id};
  JobSpec& spec = job.spec;
  auto uri = row.OptionalText();
  auto ir = row.OptionalText();
  const std::string_view actions = row.Text();
  const auto options = row.OptionalText();
  spec.tag = row.Text();
  if (!row.ChecksumMatches()) return Damaged("jobs", id);
  LF_TRY(job.replayed, ReadReplayed(row, id));
  if (uri) spec.source = looptree::BenchmarkUri{*std::move(uri)};
  if (ir) spec.source = looptree::IrText{*std::move(ir)};
  LF_TRY(spec.actions, ParseActionsText(actions));
  if (options) {
    StoredOptions stored{.spec = spec, .accepted_at = {}};
    LF_TRY_VOID(ParseOptionsText(*options, stored));
    job.accepted_at = stored.accepted_at;
  }
  return job;
}

}  // namespace

Status JobTable::Insert(JobId job, const JobSpec& spec, WallTime accepted_at,
                        const std::optional<ReplayResult>& replayed) {
  if (!spec.passes.empty() || !spec.observe.empty()) LF_TRY_VOID(RaiseOldestProgram(14));
  if (spec.profile != ProfileLevel::kNone) LF_TRY_VOID(RaiseOldestProgram(17));
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&spec.source);
  const auto* ir = std::get_if<looptree::IrText>(&spec.source);
  LF_TRY(const auto options, OptionsText(spec, accepted_at));
  rows_.Add(job.batch.value).Add(job.index);
  uri ? rows_.Add(uri->text) : rows_.AddNull();
  ir ? rows_.Add(ir->text) : rows_.AddNull();
  rows_.Add(ActionsText(spec.actions)).Add(options).Add(spec.tag).AddChecksum();
  if (replayed) {
    rows_.Add(std::span<const std::uint8_t>(replayed->subject.bytes))
        .Add(EnumName(replayed->placement))
        .AddChecksum();
  } else {
    rows_.AddNull().AddNull().AddChecksum();
  }
  return rows_.EndRow();
}

Status JobTable::RaiseOldestProgram(int version) {
  if (oldest_program_ >= version) return {};
  oldest_program_ = version;
  return storage::RaiseOldestProgram(connection_, version);
}

Result<std::optional<JobSpec>> JobTable::Find(JobId job) {
  LF_TRY(auto stored, FindUnfinished(job));
  if (!stored) return std::nullopt;
  return std::move(stored->spec);
}

Result<std::optional<UnfinishedJob>> JobTable::FindUnfinished(JobId job) {
  LF_TRY(Query query, connection_.Start("SELECT * FROM jobs WHERE batch = ? AND idx = ?"));
  query.Add(job.batch.value).Add(job.index);
  LF_TRY(const bool found, query.Next());
  if (!found) return std::nullopt;
  query.Skip();  // batch
  query.Skip();  // idx
  return ReadRow(query, job);
}

Status JobTable::ForEach(BatchId batch, std::uint32_t first, const Visit& visit) {
  LF_TRY(Query query,
         connection_.Start("SELECT * FROM jobs WHERE batch = ? AND idx >= ? ORDER BY idx"));
  query.Add(batch.value).Add(first);
  while (true) {
    LF_TRY(const bool more, query.Next());
    if (!more) return {};
    query.Skip();  // batch
    const JobId job{batch, query.Int<std::uint32_t>()};
    if (visit(job, ReadRow(query, job)) == Go::kStop) return {};
  }
}

Result<JobTable::Removed> JobTable::RemoveFirst(BatchId batch, std::uint32_t most_rows,
                                                std::size_t most_bytes) {
  Removed removed;
  std::uint32_t last = 0;
  {
    LF_TRY(Query query, connection_.Start(R"sql(
      SELECT idx, coalesce(length(ir), 0) + length(actions) + coalesce(length(options), 0) +
                  length(tag)
      FROM jobs WHERE batch = ? ORDER BY idx LIMIT ?)sql"));
    query.Add(batch.value).Add(most_rows);
    while (removed.bytes < most_bytes) {
      LF_TRY(const bool more, query.Next());
      if (!more) break;
      last = query.Int<std::uint32_t>();
      removed.bytes += query.Int<std::size_t>();
      ++removed.rows;
    }
  }
  if (removed.rows == 0) return removed;
  LF_TRY(Query query, connection_.Start("DELETE FROM jobs WHERE batch = ? AND idx <= ?"));
  LF_TRY_VOID(query.Add(batch.value).Add(last).Run());
  return removed;
}

}  // namespace loopfleet::storage
