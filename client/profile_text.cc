#include "client/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "common/base/counted.h"
#include "common/job/loop_schedule.h"
#include "common/looptree/text/text.h"

namespace loopfleet::client {
namespace {

using looptree::LoopTree;
using looptree::TreeNode;
using looptree::TreeRef;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

std::string NameOf(const LoopTree& tree, TreeRef ref) {
  const TreeNode& node = tree.nodes()[ref];
  return node.kind == TreeNode::Kind::kLoop ? fmt::format("L{}", ref)
                                            : fmt::format("%{}", node.node);
}

std::string PartText(const LoopTree& tree, const ProfilePlace& place) {
  const std::string indent(tree.nodes()[place.ref].depth, ' ');
  const std::string name = NameOf(tree, place.ref);
  switch (place.part) {
    case ProfilePart::kNode: break;
    case ProfilePart::kPack: return fmt::format("{}(packs inputs for {})", indent, name);
    case ProfilePart::kZero: return fmt::format("{}(sets {} to its start)", indent, name);
    case ProfilePart::kCombine: return fmt::format("{}(combines and stores {})", indent, name);
    case ProfilePart::kOutside: return "(outside of all)";
  }
  return "";
}

// What a profile of lines says of each place, a profile of loops says of the whole below it.
double TotalOf(const Profile& profile, const LoopTree& tree, const ProfileLine& line) {
  const bool is_whole = profile.level != ProfileLevel::kLines;
  if (is_whole || line.place.part != ProfilePart::kNode) return line.share;
  const auto is_inside = [&](const ProfileLine& other) {
    return other.place.part != ProfilePart::kOutside && line.place.ref <= other.place.ref &&
           other.place.ref < tree.nodes()[line.place.ref].end;
  };
  double total = 0;
  for (const ProfileLine& other : profile.lines) {
    if (is_inside(other)) total += other.share;
  }
  return total;
}

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
      return fmt::format("a copy that reads the clock between roots, {} of the kernel's time", cost);
    case ProfileLevel::kLoops:
      return fmt::format("a copy that counts at loops, {} of the kernel's time", cost);
    case ProfileLevel::kLines:
      return fmt::format("{} of the kernel, {} of its time",
                         Counted(static_cast<std::uint64_t>(samples), "sample", "samples"), cost);
  }
  return "";
}

}  // namespace

std::vector<ProfileRow> ProfileRows(const JobSpec& spec, const Profile& profile) {
  const auto replayed = ReplayJob(spec);
  if (!replayed) return {};
  const LoopTree& tree = replayed->tree;
  const std::vector<std::string> nodes = LinesOf(looptree::TreeText(
      tree, {.dialect = replayed->benchmark.dialect, .target = replayed->benchmark.target}));
  std::vector<ProfileRow> rows;
  TreeRef next = 0;
  const auto add_nodes_before = [&](TreeRef ref) {
    for (; next < ref; ++next) {
      rows.push_back({.line = {.place = {.ref = next}}, .text = nodes[next]});
    }
  };
  for (const ProfileLine& line : profile.lines) {
    const bool is_outside = line.place.part == ProfilePart::kOutside;
    if (!is_outside && line.place.ref >= nodes.size()) continue;
    add_nodes_before(is_outside ? static_cast<TreeRef>(nodes.size()) : line.place.ref);
    ProfileRow row{.line = line, .is_known = true, .total = TotalOf(profile, tree, line)};
    if (line.place.part == ProfilePart::kNode) {
      row.text = nodes[line.place.ref];
      if (line.fused_into && *line.fused_into < nodes.size()) {
        row.text += fmt::format("  (with {})", NameOf(tree, *line.fused_into));
      }
      next = line.place.ref + 1;
    } else {
      row.text = PartText(tree, line.place);
    }
    rows.push_back(std::move(row));
  }
  add_nodes_before(static_cast<TreeRef>(nodes.size()));
  return rows;
}

std::string ProfileText(const JobSpec& spec, const Profile& profile) {
  const std::vector<ProfileRow> rows = ProfileRows(spec, profile);
  std::size_t width = 0;
  for (const ProfileRow& row : rows) width = std::max(width, row.text.size());
  std::string text = WithoutTrailingBlanks(
      profile.level == ProfileLevel::kLines
          ? fmt::format("{:<{}}  {:>6}  {:>6}  {:>14}", "", width, "total %", "self %", "95 %")
          : fmt::format("{:<{}}  {:>6}  {:>14}  {:>12}  {:>9}", "", width, "%", "range", "cycles",
                        "entries"));
  for (const ProfileRow& row : rows) text += WithoutTrailingBlanks(RowText(profile, row, width));
  text += fmt::format("by {}: {}; no figure\n", EnumName(profile.level), EvidenceText(profile));
  if (!profile.note.empty()) {  // a worker's text: no escape sequences
    for (const char c : profile.note) text += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    text += "\n";
  }
  return text;
}

}  // namespace loopfleet::client
