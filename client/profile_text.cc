#include "client/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/counted.h"
#include "common/base/printable.h"
#include "common/job/profile_rows.h"

namespace loopfleet::client {
namespace {

std::string Bar(double share) {
  constexpr double kWidth = 20;
  const auto cells = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kWidth));
  std::string bar;
  for (std::size_t i = 0; i < cells; ++i) bar += "█";
  return bar;
}

std::string Percent(double share) { return fmt::format("{:.1f}", 100 * share); }

std::string RowText(const Profile& profile, const ProfileRow& row, std::size_t width) {
  // Padded by characters that are seen: names are ASCII.
  std::string text = fmt::format("{:<{}}", row.text, width);
  if (!row.is_known) return text;
  if (profile.level == ProfileLevel::kLines) {
    text += fmt::format("  {:>6}  {:>6}  {:>5} to {:>5}", Percent(row.total),
                        Percent(row.line.share), Percent(row.line.low), Percent(row.line.high));
  } else {
    text += fmt::format("  {:>6}  {:>5} to {:>5}  {:>12.6g}  {:>9.6g}", Percent(row.line.share),
                        Percent(row.line.low), Percent(row.line.high), row.line.cycles,
                        row.line.entries);
  }
  return text + "  " + Bar(row.line.share);
}

std::string WithoutTrailingBlanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string EvidenceText(const Profile& profile) {
  double samples = 0;
  for (const ProfileLine& line : profile.lines) samples += line.samples;
  const std::string cost = fmt::format("{:+.1f} %", 100 * profile.overhead);
  switch (profile.level) {
    case ProfileLevel::kNone: break;
    case ProfileLevel::kRoots:
      return fmt::format("the clock is read between roots, {} of the kernel's time", cost);
    case ProfileLevel::kLoops:
      return fmt::format("a copy that counts at loops, {} of the kernel's time", cost);
    case ProfileLevel::kLines:
      return fmt::format("{} of the kernel, {} of its time",
                         Counted(static_cast<std::uint64_t>(samples), "sample", "samples"), cost);
  }
  return "";
}

}  // namespace

std::string ProfileText(const JobSpec& spec, const Profile& profile) {
  const std::vector<ProfileRow> rows = ProfileRows(spec, profile);
  std::size_t width = 0;
  for (const ProfileRow& row : rows) width = std::max(width, row.text.size());
  std::string text = WithoutTrailingBlanks(
      profile.level == ProfileLevel::kLines
          ? fmt::format("{:<{}}  {:>6}  {:>6}  {:>14}", "", width, "total %", "self %", "95 %")
          : fmt::format("{:<{}}  {:>6}  {:>14}  {:>12}  {:>9}", "", width, "%", "95 %", "cycles",
                        "entries"));
  for (const ProfileRow& row : rows) text += WithoutTrailingBlanks(RowText(profile, row, width));
  text += fmt::format("by {}: {}; no figure\n", EnumName(profile.level), EvidenceText(profile));
  if (!profile.note.empty()) text += Printable(profile.note) + "\n";
  return text;
}

}  // namespace loopfleet::client
