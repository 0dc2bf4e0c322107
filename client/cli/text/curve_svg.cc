#include "client/cli/text/curve_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>

namespace loopfleet::client {
namespace {

// Pixels.
constexpr double kPanelWidth = 380;
constexpr double kPanelHeight = 260;
constexpr double kLeft = 60;
constexpr double kTop = 20;
constexpr double kGap = 70;   // between the panels
constexpr double kAxis = 45;  // below a panel
constexpr double kLegendLine = 18;

// Of Okabe and Ito, which colour-blind readers can tell apart.
constexpr std::array<std::string_view, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#000000"};

struct Panel {
  double left = 0;
  std::string_view label;
  std::function<double(const NamedCurve&, const CurvePoint&)> at;
  std::function<double(const NamedCurve&)> end;
};

double Gflops(const NamedCurve& curve, const CurvePoint& point) {
  return static_cast<double>(curve.flop_count) / point.best_cost;
}

// The smallest of 1, 2, 5, 10, 20 ... that makes at most six steps up to `most`.
double TickStep(double most) {
  double step = std::pow(10, std::floor(std::log10(most / 6)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (most / step <= 6) break;
    step *= factor;
  }
  return step;
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string AxesText(const Panel& panel, double most_x, double most_y) {
  const double bottom = kTop + kPanelHeight;
  std::string text;
  for (double y = 0; y <= most_y; y += TickStep(most_y)) {
    const double at = bottom - y / most_y * kPanelHeight;
    text += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}h{:.1f}\"/>\n", panel.left, at,
                        kPanelWidth);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
                        panel.left - 6, at + 4, y);
  }
  for (double x = 0; x <= most_x; x += TickStep(most_x)) {
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>\n",
                        panel.left + x / most_x * kPanelWidth, bottom + 17, x);
  }
  text += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}v{:.1f}h{:.1f}\"/>\n", panel.left,
                      kTop, kPanelHeight, kPanelWidth);
  text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                      panel.left + kPanelWidth / 2, bottom + 36, panel.label);
  return text;
}

// Steps: a figure is the best until the next one.
std::string LineText(const Panel& panel, const NamedCurve& curve, std::string_view colour,
                     double most_x, double most_y) {
  const auto x_of = [&](double x) { return panel.left + x / most_x * kPanelWidth; };
  const auto y_of = [&](const CurvePoint& point) {
    return kTop + kPanelHeight - Gflops(curve, point) / most_y * kPanelHeight;
  };
  std::string path = fmt::format("M{:.1f} {:.1f}", x_of(panel.at(curve, curve.points.front())),
                                 y_of(curve.points.front()));
  for (const CurvePoint& point : curve.points) {
    path += fmt::format("H{:.1f}V{:.1f}", x_of(panel.at(curve, point)), y_of(point));
  }
  path += fmt::format("H{:.1f}", x_of(panel.end(curve)));
  return fmt::format("<path class=\"curve\" stroke=\"{}\" d=\"{}\"/>\n", colour, path);
}

}  // namespace

std::string CurveSvg(const std::vector<NamedCurve>& given) {
  std::vector<NamedCurve> curves = given;
  std::erase_if(curves, [](const NamedCurve& curve) { return curve.points.empty(); });
  double most_y = 1e-9;
  for (const NamedCurve& curve : curves) {
    most_y = std::max(most_y, 1.05 * Gflops(curve, curve.points.back()));
  }
  const std::array<Panel, 2> panels = {
      {{.left = kLeft,
        .label = "evaluations",
        .at = [](const NamedCurve&,
                 const CurvePoint& point) { return static_cast<double>(point.evaluations); },
        .end = [](const NamedCurve& curve) { return static_cast<double>(curve.evaluations); }},
       {.left = kLeft + kPanelWidth + kGap,
        .label = "seconds",
        .at = [](const NamedCurve&, const CurvePoint& point) { return point.seconds; },
        .end = [](const NamedCurve& curve) { return curve.seconds; }}}};
  const double width = kLeft + 2 * kPanelWidth + kGap + 20;
  const double legend = kTop + kPanelHeight + kAxis;
  const double height = legend + kLegendLine * (static_cast<double>(curves.size()) + 0.5);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 "
      "{0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<style>.grid{{stroke:#ddd}}.axis{{fill:none;stroke:#333}}"
      ".curve{{fill:none;stroke-width:2}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text x=\"{2:.0f}\" y=\"{3:.0f}\">best GFLOP/s so far</text>\n",
      width, height, kLeft, kTop - 6);
  for (const Panel& panel : panels) {
    double most_x = 1e-9;
    for (const NamedCurve& curve : curves) most_x = std::max(most_x, panel.end(curve));
    text += AxesText(panel, most_x, most_y);
    for (std::size_t i = 0; i < curves.size(); ++i) {
      text += LineText(panel, curves[i], kColours[i % kColours.size()], most_x, most_y);
    }
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double y = legend + kLegendLine * (static_cast<double>(i) + 0.5);
    text += fmt::format(
        "<path class=\"curve\" stroke=\"{}\" d=\"M{:.0f} {:.1f}h20\"/>"
        "<text x=\"{:.0f}\" y=\"{:.1f}\">{}</text>\n",
        kColours[i % kColours.size()], kLeft, y - 4, kLeft + 28, y, Escaped(curves[i].name));
  }
  return text + "</svg>\n";
}

}  // namespace loopfleet::client
