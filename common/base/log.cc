#include "common/base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <iterator>
#include <memory>
#include <string>
#include <utility>

namespace loopfleet::log {
namespace {

// Escapes control characters, so that an event stays on one line.
class EscapedEvent final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    for (const char byte : message.payload) {
      const auto code = static_cast<unsigned char>(byte);
      if (code < 0x20 || code == 0x7f) {
        fmt::format_to(std::back_inserter(line), "\\x{:02x}", code);
      } else {
        line.push_back(byte);
      }
    }
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<EscapedEvent>();
  }
};

}  // namespace

void Init(std::string_view program, Level level) {
  auto logger = std::make_shared<spdlog::logger>(std::string(program),
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<EscapedEvent>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %n %*");
  logger->set_formatter(std::move(formatter));
  switch (level) {
    case Level::kDebug: logger->set_level(spdlog::level::debug); break;
    case Level::kInfo: logger->set_level(spdlog::level::info); break;
    case Level::kWarning: logger->set_level(spdlog::level::warn); break;
    case Level::kError: logger->set_level(spdlog::level::err); break;
  }
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace loopfleet::log
