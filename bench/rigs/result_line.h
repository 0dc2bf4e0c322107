#pragma once
// One result of a benchmark as a line of JSON on standard output.

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace loopfleet::bench {

struct ResultLine {
  std::string bench;
  std::string name;  // "case"
  double value = 0;
  std::string unit;
  std::string peer;                  // what it is compared with, and how the peer was run
  std::optional<double> peer_value;  // nullopt: the peer is not installed
  nlohmann::ordered_json details;    // further fields; an object
};
void Print(const ResultLine& result);

}  // namespace loopfleet::bench
