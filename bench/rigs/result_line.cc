#include "bench/rigs/result_line.h"

#include <fmt/format.h>

#include <cstdio>

namespace loopfleet::bench {

void Print(const ResultLine& result) {
  nlohmann::ordered_json line;
  line["bench"] = result.bench;
  line["case"] = result.name;
  line["value"] = result.value;
  line["unit"] = result.unit;
  line["peer"] = result.peer;
  line["peer_value"] = nullptr;
  line["ratio"] = nullptr;
  if (result.peer_value) {
    line["peer_value"] = *result.peer_value;
    line["ratio"] = result.value / *result.peer_value;
  }
  if (result.details.is_object()) line.update(result.details);
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

}  // namespace loopfleet::bench
