#pragma once
// OutcomeSalvage: `outcomes` made anew from what can be read of it, for when pages of it cannot: a
// row could never be written beside such a page again, and the jobs whose outcomes go there would
// never end.
//
// Every outcome keeps its place. Those that are lost become failures STORAGE_CORRUPT of the jobs
// that have none any more and had one, which the table's index tells; where that is lost, too, of
// the batch's first jobs without an outcome. The damaged table stays, as `outcomes_damaged_1` (2, 3
// ...): nothing in it is changed, and what it holds can still be looked at. Takes as long as
// writing all outcomes anew.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/batch_table.h"
#include "storage/sqlite/tables/outcome_table.h"

namespace loopfleet::storage {

class OutcomeSalvage {
 public:
  OutcomeSalvage(Connection& connection, BatchTable& batches, OutcomeTable& outcomes)
      : connection_(connection), batches_(batches), outcomes_(outcomes) {}

  // Is there a page that cannot be read and that an outcome of these batches may be written to?
  // Looks at their part of the index and at the end of their rows.
  Result<bool> IsNeeded(std::span<const StoredBatch> batches);

  struct Salvaged {
    bool met_damage = false;  // else nothing was changed
    std::vector<OutcomePlace> lost;
    std::string left_in;  // the damaged table's name now
  };
  // In a transaction of its own; on an error nothing has changed.
  Result<Salvaged> Run();

 private:
  // What the index says of a batch, read without the rows.
  struct Index {
    std::vector<std::uint32_t> jobs;  // with an outcome
    bool is_whole = true;
  };

  Status MakeAnew(Connection& damaged, Salvaged& salvaged);
  Status Salvage(Connection& damaged, BatchId id, RowFeed& rows, std::vector<Outcome>& lost,
                 bool& met_damage);
  static Result<Index> ReadIndex(Connection& connection, const StoredBatch& batch);
  Status Recount(BatchId id);

  Connection& connection_;
  BatchTable& batches_;
  OutcomeTable& outcomes_;
};

}  // namespace loopfleet::storage
