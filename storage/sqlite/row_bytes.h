#pragma once
// The bytes that a row's checksum covers: a sequence of (type, length, bytes), so that different
// rows never give equal bytes. The types are those that SQLite reports when the row is read.

#include <sqlite3.h>
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace loopfleet::storage {

inline constexpr std::size_t kValueHeadBytes = 1 + sizeof(std::uint32_t);

inline void AppendValue(std::string& row, int type, std::string_view bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  char head[kValueHeadBytes] = {static_cast<char>(type)};
  std::memcpy(head + 1, &length, sizeof length);
  row.append(head, sizeof head).append(bytes);
}

inline void AppendInt64(std::string& row, std::int64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  AppendValue(row, SQLITE_INTEGER, {bytes, sizeof bytes});
}

inline void AppendDouble(std::string& row, double value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  AppendValue(row, SQLITE_FLOAT, {bytes, sizeof bytes});
}

inline std::int64_t ChecksumOf(std::string_view row) {
  return static_cast<std::int64_t>(XXH3_64bits(row.data(), row.size()));
}

}  // namespace loopfleet::storage
