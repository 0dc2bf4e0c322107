#pragma once
// Curves of a search as a picture: best GFLOP/s so far, against evaluations and against seconds.

#include <cstdint>
#include <string>
#include <vector>

#include "client/search/exploration.h"

namespace loopfleet::client {

struct NamedCurve {
  std::string name;
  std::vector<CurvePoint> points;
  std::uint64_t flop_count = 0;
  std::uint64_t evaluations = 0;  // at the end, which the curve is drawn to
  double seconds = 0;
};

// An SVG document: two panels side by side, and a legend. Curves without a point are left out.
std::string CurveSvg(const std::vector<NamedCurve>& curves);

}  // namespace loopfleet::client
