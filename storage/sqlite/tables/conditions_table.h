#pragma once
// ConditionsTable: Conditions <-> rows of `conditions`, `hardware` and `compilers`. Distinct ones
// are few (some for each start of a worker): each is written once, and the 4,096 used last, at
// least, are cached.

#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "common/job/outcome.h"
#include "storage/record.h"
#include "storage/sqlite/recent_map.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

using ConditionsId = std::int64_t;

// Covers what varies: hosts, and in one host's conditions the rest of them.
struct ConditionsHash {
  std::size_t operator()(const Conditions& conditions) const;
};

class ConditionsTable {
 public:
  explicit ConditionsTable(Connection& connection) : connection_(connection) {}

  // The id of these conditions, which are written if they are new.
  Result<ConditionsId> Intern(const Conditions& conditions);

  // kCorrupt: the row is missing or damaged.
  Result<Conditions> Find(ConditionsId id);

  // One for each hardware class; damaged rows are skipped.
  Result<std::vector<ReferenceClock>> ReferenceClocks();

  // Call after a rollback: what the transaction interned is gone.
  void Forget() {
    latest_ = nullptr;
    ids_.Clear();
    conditions_.Clear();
  }

 private:
  using Ids = RecentMap<Conditions, ConditionsId, ConditionsHash>;
  static constexpr std::size_t kMostCached = 4096;

  Result<std::int64_t> InternHardware(const HardwareFacts& facts);
  Result<std::int64_t> InternCompiler(const CompilerFacts& facts);
  Result<HardwareFacts> FindHardware(std::int64_t id);
  Result<CompilerFacts> FindCompiler(std::int64_t id);

  Connection& connection_;
  Ids ids_{kMostCached};
  const Ids::Entry* latest_ = nullptr;  // in ids_; the last one used
  RecentMap<ConditionsId, Conditions> conditions_{kMostCached};
};

}  // namespace loopfleet::storage
