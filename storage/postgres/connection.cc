#include "storage/postgres/connection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace loopfleet::storage {
namespace {

std::string OneLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& byte : text) byte = byte == '\n' || byte == '\t' ? ' ' : byte;
  return text;
}

template <class... Kinds>
bool IsOneOf(const pqxx::sql_error& error) {
  return (... || (dynamic_cast<const Kinds*>(&error) != nullptr));
}

// Whether trying again can help. pqxx gives its more special errors no SQLSTATE. Classes 08, 40, 53
// and 57 pass: connection, a transaction that another one stopped, resources, an operator's order
// or a timeout. So does 55P03, a lock that was not had in time.
bool MayPass(const pqxx::sql_error& error) {
  if (IsOneOf<pqxx::insufficient_privilege, pqxx::data_exception,
              pqxx::integrity_constraint_violation, pqxx::syntax_error, pqxx::undefined_table,
              pqxx::undefined_column, pqxx::feature_not_supported>(error)) {
    return false;
  }
  const std::string state = error.sqlstate().substr(0, 2);
  return state.empty() || state == "08" || state == "40" || state == "53" || state == "57" ||
         error.sqlstate() == "55P03";
}

bool MayPass(const std::exception& thrown, const std::string& text) {
  if (const auto* refused = dynamic_cast<const pqxx::sql_error*>(&thrown)) return MayPass(*refused);
  if (dynamic_cast<const pqxx::broken_connection*>(&thrown) == nullptr) return true;
  return text.find("FATAL:  database") == std::string::npos &&
         text.find("FATAL:  role") == std::string::npos;
}

}  // namespace

// A URL and a list of settings each take more settings in their own way.
std::string ConnectionText(const std::string& address, const std::string& program) {
  const std::array limits = {
      std::string("connect_timeout=10"),     std::string("keepalives_idle=5"),
      std::string("keepalives_interval=5"),  std::string("keepalives_count=3"),
      std::string("tcp_user_timeout=20000"), "application_name=" + program};
  if (address.find("://") == std::string::npos) {
    return fmt::format("{} {}", address, fmt::join(limits, " "));
  }
  const char first = address.find('?') == std::string::npos ? '?' : '&';
  return fmt::format("{}{}{}", address, first, fmt::join(limits, "&"));
}

Error ErrorOf(const std::string& what, const std::exception& thrown) {
  const std::string text = OneLine(thrown.what());
  return {.kind = MayPass(thrown, text) ? ErrorKind::kUnavailable : ErrorKind::kInvalid,
          .message = fmt::format("{}: {}", what, text)};
}

}  // namespace loopfleet::storage
