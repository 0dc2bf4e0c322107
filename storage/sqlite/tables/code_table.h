#pragma once
// CodeTable: the measurements of each machine code (`code_results`), and which of them a copied
// figure repeats (`copied_results`). A code is a HashOfCode: readers of a result that is found by
// it compare the code itself.

#include <cstddef>
#include <optional>
#include <vector>

#include "common/base/result.h"
#include "common/job/measurement.h"
#include "storage/result_index/result_hash.h"
#include "storage/result_index/result_keys.h"
#include "storage/sqlite/bulk_insert.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class CodeTable {
 public:
  explicit CodeTable(Connection& connection) : connection_(connection) {}

  // The result is a measurement that may answer for other kernels with this code.
  Status Insert(ResultHash code, ResultId id, const Measurement& measurement);
  // The result is a copy. It gets no row if no measurement of the code has its figure: the job that
  // measured it was cancelled.
  Status InsertCopy(ResultHash code, ResultId id, const Measurement& measurement);
  Status Flush() { return code_rows_.Flush(); }
  void Forget() { code_rows_.Forget(); }

  // Measurements of the code, newest first.
  Result<std::vector<ResultId>> Find(ResultHash code, std::size_t max);
  // The measurement that the result repeats; none: it is no copy. kCorrupt: the row is damaged.
  Result<std::optional<ResultId>> OriginalOf(ResultId id);

 private:
  Connection& connection_;
  RowFeed code_rows_{connection_, "REPLACE INTO code_results SELECT c0,c1,c2 FROM row_feed"};
};

}  // namespace loopfleet::storage
