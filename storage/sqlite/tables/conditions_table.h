#pragma once
// ConditionsTable: Conditions <-> rows of `conditions`, `hardware` and `compilers`. Distinct ones
// are few (some for each host): each is written once, and recent ones are cached.

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/job/outcome.h"
#include "storage/record.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

using ConditionsId = std::int64_t;

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
    ids_.clear();
    conditions_.clear();
  }

 private:
  struct Hash {
    std::size_t operator()(const Conditions& conditions) const;
  };

  Result<std::int64_t> InternHardware(const HardwareFacts& facts);
  Result<std::int64_t> InternCompiler(const CompilerFacts& facts);
  Result<HardwareFacts> FindHardware(std::int64_t id);
  Result<CompilerFacts> FindCompiler(std::int64_t id);

  Connection& connection_;
  std::unordered_map<Conditions, ConditionsId, Hash> ids_;
  const std::pair<const Conditions, ConditionsId>* latest_ = nullptr;  // in ids_; the last one used
  std::unordered_map<ConditionsId, Conditions> conditions_;
};

}  // namespace loopfleet::storage
