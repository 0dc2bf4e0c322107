#include "storage/job_table.h"

#include <fmt/format.h>

#include "storage/damage.h"
#include "storage/job_text.h"

namespace loopfleet::storage {
namespace {

// Reads the columns batch .. checksum of `jobs`, from the query's current one on.
Result<JobSpec> ReadRow(Query& row, JobId job) {
  row.Skip();  // batch
  row.Skip();  // idx
  JobSpec spec;
  auto uri = row.OptionalText();
  auto ir = row.OptionalText();
  const std::string_view actions = row.Text();
  const auto options = row.OptionalText();
  spec.tag = row.Text();
  if (!row.ChecksumMatches()) return Damaged("jobs", job);
  if (uri) spec.source = looptree::BenchmarkUri{*std::move(uri)};
  if (ir) spec.source = looptree::IrText{*std::move(ir)};
  LF_TRY(spec.actions, ParseActionsText(actions));
  if (options) {
    LF_TRY_VOID(ParseOptionsText(*options, spec));
  }
  return spec;
}

}  // namespace

Status JobTable::Insert(JobId job, const JobSpec& spec) {
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&spec.source);
  const auto* ir = std::get_if<looptree::IrText>(&spec.source);
  LF_TRY(const auto options, OptionsText(spec));
  LF_TRY(Query query, connection_.Start("INSERT INTO jobs VALUES (?,?,?,?,?,?,?,?)"));
  query.Add(job.batch.value).Add(job.index);
  uri ? query.Add(uri->text) : query.AddNull();
  ir ? query.Add(ir->text) : query.AddNull();
  query.Add(ActionsText(spec.actions)).Add(options).Add(spec.tag).AddChecksum();
  return query.Run();
}

Result<std::optional<JobSpec>> JobTable::Find(JobId job) {
  LF_TRY(Query query, connection_.Start("SELECT * FROM jobs WHERE batch = ? AND idx = ?"));
  query.Add(job.batch.value).Add(job.index);
  LF_TRY(const bool found, query.Next());
  if (!found) return std::nullopt;
  LF_TRY(JobSpec spec, ReadRow(query, job));
  return spec;
}

}  // namespace loopfleet::storage
