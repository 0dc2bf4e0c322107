#include "common/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <string>

namespace loopfleet::log {

void Init(std::string_view program, Level level) {
  auto logger = std::make_shared<spdlog::logger>(
      std::string(program), std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %n %v", spdlog::pattern_time_type::utc);
  switch (level) {
    case Level::kDebug: logger->set_level(spdlog::level::debug); break;
    case Level::kInfo: logger->set_level(spdlog::level::info); break;
    case Level::kWarning: logger->set_level(spdlog::level::warn); break;
    case Level::kError: logger->set_level(spdlog::level::err); break;
  }
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace loopfleet::log
