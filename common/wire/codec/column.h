#pragma once
// Internal to the codec. Columns: lists with one entry for each row, offsets into a flat list,
// concatenated texts, and tables of values that rarely differ. Readers throw Refusal (frame.h).

#include <capnp/list.h>
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/wire/codec/frame.h"
#include "common/wire/codec/outcome_columns.h"
#include "schema/outcome.capnp.h"

namespace loopfleet::wire {

// Returns `list`; refuses it unless it has exactly one entry for each row.
template <class List>
List OneForEachRow(List list, std::uint32_t rows, std::string_view name) {
  if (list.size() != rows) {
    RefuseMalformed(fmt::format("column '{}' has {} entries for {} rows", name, list.size(), rows));
  }
  return list;
}

// All entries of a list.
template <class T, class List>
std::vector<T> VectorOf(List list) {
  std::vector<T> values(list.size());
  for (std::uint32_t i = 0; i < list.size(); ++i) values[i] = list[i];
  return values;
}

// Returns `offsets`; refuses them unless they split `total` entries into `rows` pieces.
capnp::List<std::uint32_t>::Reader ReadOffsets(capnp::List<std::uint32_t>::Reader offsets,
                                               std::uint32_t rows, std::size_t total,
                                               std::string_view name);

void WriteTextColumn(std::span<const std::string* const> texts,
                     schema::TextColumn::Builder builder);
// Refuses a text that is not UTF-8 or exceeds `max_bytes`.
TextRows ReadTextColumn(schema::TextColumn::Reader reader, std::uint32_t rows,
                        std::size_t max_bytes, std::string_view name);

// Distinct values in the order of their first use. Holds pointers to the given values.
template <class T, class Hash = std::hash<T>>
class DistinctValues {
 public:
  // The 0-based index of `value` in values().
  std::uint32_t IndexOf(const T& value) {
    if (last_ < values_.size() && *values_[last_] == value) return last_;
    const std::size_t hash = Hash{}(value);
    const auto [begin, end] = by_hash_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (*values_[it->second] == value) return last_ = it->second;
    }
    last_ = static_cast<std::uint32_t>(values_.size());
    by_hash_.emplace(hash, last_);
    values_.push_back(&value);
    return last_;
  }
  const std::vector<const T*>& values() const { return values_; }

 private:
  std::vector<const T*> values_;
  std::unordered_multimap<std::size_t, std::uint32_t> by_hash_;
  std::uint32_t last_ = 0;  // neighbours are mostly equal
};

}  // namespace loopfleet::wire
