#pragma once
// Violations: the promises that one seed broke. Only the first counts; later ones may follow from
// it.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/simulation/fault_mix.h"

namespace loopfleet::simulation {

struct Violation {
  std::string rule;  // "I1 durable before accepted"
  std::string text;
};

class Violations {
 public:
  explicit Violations(const FaultMix& mix) : mix_(mix) {}

  void Violate(std::string rule, std::string text) {
    if (!first_) first_ = Violation{std::move(rule), std::move(text)};
  }
  void Obey(const std::optional<std::string>& broken, const char* rule) {
    if (broken) Violate(rule, *broken);
  }
  // Something that must not happen in a world without faults.
  void Surprised(std::string_view what) {
    if (!mix_.has_faults()) Violate("calm runs are smooth", std::string(what));
  }
  const std::optional<Violation>& first() const { return first_; }

 private:
  const FaultMix& mix_;
  std::optional<Violation> first_;
};

}  // namespace loopfleet::simulation
