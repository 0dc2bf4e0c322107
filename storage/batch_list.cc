#include "storage/batch_list.h"

#include <algorithm>
#include <iterator>

namespace loopfleet::storage {

std::vector<StoredBatch> WithOlder(std::vector<StoredBatch> newest, std::vector<StoredBatch> older,
                                   std::size_t max) {
  for (auto at = newest.end(); at != newest.begin();) {
    if (newest.size() + older.size() <= max) break;
    --at;
    if (at->is_over()) at = newest.erase(at);
  }
  older.resize(std::min(older.size(), max - newest.size()));
  std::ranges::move(older, std::back_inserter(newest));
  return newest;
}

}  // namespace loopfleet::storage
