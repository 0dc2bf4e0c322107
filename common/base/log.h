#pragma once
// Logs one event per line to standard error: "time level program event key=value ...". The format
// string is the event and its ids, for example Info("worker.lost worker={} leases={}", name,
// count). Rates are metrics, not log lines. Control characters are escaped (\x0a), so that text
// from a peer cannot forge lines. Safe from any thread.

#include <spdlog/spdlog.h>

#include <array>
#include <string_view>
#include <utility>

#include "common/base/enum_names.h"

namespace loopfleet::log {

enum class Level { kDebug, kInfo, kWarning, kError };

// Called once by main(), before any thread starts. Every line names `program`.
void Init(std::string_view program, Level level);

template <class... Args>
void Debug(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::debug(format, std::forward<Args>(args)...);
}
template <class... Args>
void Info(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::info(format, std::forward<Args>(args)...);
}
template <class... Args>
void Warning(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::warn(format, std::forward<Args>(args)...);
}
template <class... Args>
void Error(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::error(format, std::forward<Args>(args)...);
}

}  // namespace loopfleet::log

namespace loopfleet {

template <>
struct EnumNames<log::Level> {
  static constexpr std::array kAll = {
      NamedValue{log::Level::kDebug, "debug"}, NamedValue{log::Level::kInfo, "info"},
      NamedValue{log::Level::kWarning, "warning"}, NamedValue{log::Level::kError, "error"}};
};

}  // namespace loopfleet
