#pragma once
// Damaged: the error for a row that is missing or whose checksum does not match. Detected before
// the row is used.

#include <fmt/format.h>

#include <string_view>

#include "common/base/result.h"

namespace loopfleet::storage {

template <class Id>
std::unexpected<Error> Damaged(std::string_view table, const Id& id) {
  return Fail(ErrorKind::kCorrupt, fmt::format("row {} of table {} is damaged", id, table));
}

}  // namespace loopfleet::storage
