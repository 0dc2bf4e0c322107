#pragma once
// Internal to the codec. Jobs: schema/job.capnp. Readers throw Refusal (frame.h).

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/wire/codec/field.h"
#include "schema/job.capnp.h"

namespace loopfleet::wire {

using ActionList = capnp::List<schema::Action>;

void WriteActions(std::span<const looptree::Action> actions, ActionList::Builder list,
                  std::uint32_t first);
// Appends `count` actions, from `first` on, to `actions`. A refusal counts from `first`.
void ReadActions(ActionList::Reader list, std::uint32_t first, std::uint32_t count,
                 std::vector<looptree::Action>& actions);

void WriteSource(const looptree::Source& source, schema::Source::Builder builder);
looptree::Source ReadSource(schema::Source::Reader reader);

void WriteJobSpec(const JobSpec& spec, schema::JobSpec::Builder builder);
JobSpec ReadJobSpec(schema::JobSpec::Reader reader);

void WriteJobId(const JobId& id, schema::JobId::Builder builder);
JobId ReadJobId(schema::JobId::Reader reader);

}  // namespace loopfleet::wire
