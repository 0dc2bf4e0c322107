#include "common/fleet/mirror_model.h"

#include <nlohmann/json.hpp>

#include <chrono>

namespace loopfleet {
namespace {

using Seconds = std::chrono::duration<double>;

}  // namespace

Json MirrorJson(const MirrorModel& mirror) {
  return {{"mirrored", mirror.mirrored},
          {"waiting", mirror.waiting},
          {"behind_seconds", Seconds(mirror.behind).count()},
          {"trouble", mirror.trouble}};
}

std::optional<MirrorModel> ParseMirror(const std::string& json) {
  const Json status = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return std::nullopt;
  return MirrorModel{
      .mirrored = status.value("mirrored", std::uint64_t{0}),
      .waiting = status.value("waiting", std::uint64_t{0}),
      .behind = std::chrono::duration_cast<Nanos>(Seconds(status.value("behind_seconds", 0.0))),
      .trouble = status.value("trouble", std::string())};
}

}  // namespace loopfleet
