#pragma once
// What every connection to PostgreSQL has in common: its address with the limits on silence, and
// pqxx's exceptions as errors.

#include <pqxx/pqxx>
#include <string>

#include "common/base/result.h"

namespace loopfleet::storage {

// The address with limits, so that a server that vanishes is noticed within about 20 s.
//   program  is shown in pg_stat_activity
std::string ConnectionText(const std::string& address, const std::string& program);

// The error that an exception of pqxx means.
//   kUnavailable  trying again may help: no server, a lost connection, an operator's order
//   kInvalid      it does not: no such database or role, no permission
Error ErrorOf(const std::string& what, const std::exception& thrown);

// Runs `work`, which may throw.
template <class Work>
auto Guarded(const char* what, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& thrown) {  // pqxx::in_doubt_error among them
    return std::unexpected(ErrorOf(what, thrown));
  }
}

}  // namespace loopfleet::storage
