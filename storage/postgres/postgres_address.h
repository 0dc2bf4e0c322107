#pragma once
// The address of a PostgreSQL database, as libpq reads it: "postgresql://user@host/database", or
// "host=... dbname=...".

#include <string>

#include "common/base/result.h"

namespace loopfleet::storage {

// kInvalid: empty, or a URL of another scheme. The message does not repeat it: it may hold a
// password.
inline Status CheckPostgresAddress(const std::string& address) {
  const auto scheme = address.substr(0, address.find("://"));
  const bool is_url = scheme.size() < address.size();
  if (!address.empty() && (!is_url || scheme == "postgresql" || scheme == "postgres")) return {};
  return Fail(ErrorKind::kInvalid,
              "the address of a PostgreSQL database is postgresql://user@host/database, or a list "
              "such as \"host=db dbname=loopfleet\"");
}

}  // namespace loopfleet::storage
