#include "common/job/profile_rows.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "common/job/loop_schedule.h"
#include "common/looptree/text/text.h"

namespace loopfleet {
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

}  // namespace loopfleet
