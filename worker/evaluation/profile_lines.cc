#include "worker/evaluation/profile_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

using looptree::TreeRef;

// As they run: what is packed or set to zero for a node comes before it.
int OrderOf(ProfilePart part) {
  switch (part) {
    case ProfilePart::kPack: return 0;
    case ProfilePart::kZero: return 1;
    case ProfilePart::kNode: return 2;
    case ProfilePart::kCombine: return 3;
    case ProfilePart::kOutside: return 4;
  }
  return 4;
}

void Sort(std::vector<ProfileLine>& lines) {
  std::ranges::sort(lines, {}, [](const ProfileLine& line) {
    const bool is_outside = line.place.part == ProfilePart::kOutside;
    return std::tuple(is_outside, line.place.ref, OrderOf(line.place.part));
  });
}

bool Counts(const ProbeSite& site, const std::set<TreeRef>& loops) {
  return site.is_root || loops.contains(site.place.ref);
}

double Ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The median and its interval.
void SetShare(std::vector<double> shares, ProfileLine& line) {
  std::ranges::sort(shares);
  const std::size_t middle = shares.size() / 2;
  const RankInterval ranks = MedianInterval(shares.size());
  line.share = shares.size() % 2 == 1 ? shares[middle] : (shares[middle - 1] + shares[middle]) / 2;
  line.low = shares[ranks.low];
  line.high = shares[ranks.high];
}

}  // namespace

double TicksOfEntry(std::span<const ProbeReading> readings, std::size_t site) {
  ProbeCount sum;
  for (const ProbeReading& reading : readings) {
    sum.ticks += reading[site].ticks;
    sum.entries += reading[site].entries;
  }
  return Ratio(sum.ticks, sum.entries);
}

std::vector<ProfileLine> LinesOfReadings(std::span<const ProbeSite> sites,
                                         const std::set<TreeRef>& loops,
                                         std::span<const ProbeReading> readings) {
  std::vector<ProfileLine> lines;
  std::vector<double> outside(readings.size(), 1.0);
  for (std::size_t site = 1; site < sites.size(); ++site) {
    if (!Counts(sites[site], loops)) continue;
    ProfileLine line{.place = sites[site].place};
    std::vector<double> shares;
    for (std::size_t i = 0; i < readings.size(); ++i) {
      const ProbeReading& reading = readings[i];
      shares.push_back(Ratio(reading[site].ticks, reading[0].ticks));
      if (sites[site].is_root) outside[i] = std::max(0.0, outside[i] - shares.back());
    }
    SetShare(std::move(shares), line);
    const double runs = static_cast<double>(readings.back()[0].entries);
    line.entries = static_cast<double>(readings.back()[site].entries) / std::max(1.0, runs);
    line.cycles = TicksOfEntry(readings, site) * line.entries;
    lines.push_back(line);
  }
  ProfileLine rest{.place = {.part = ProfilePart::kOutside}};
  SetShare(std::move(outside), rest);
  rest.entries = 1;
  rest.cycles = TicksOfEntry(readings, 0) * rest.share;
  lines.push_back(rest);
  Sort(lines);
  return lines;
}

void KeepMost(Profile& profile) {
  const std::size_t all = profile.lines.size();
  if (all <= kMostProfileLines) return;
  profile.note = fmt::format("{} of {} lines are not kept", all - kMostProfileLines, all);
  profile.lines.resize(kMostProfileLines);
}

std::set<TreeRef> LoopsInside(std::span<const ProbeSite> sites, const std::set<TreeRef>& loops,
                              std::span<const ProbeReading> readings, double least_ticks) {
  std::set<TreeRef> inside;
  for (std::size_t site = 1; site < sites.size(); ++site) {
    const ProbeSite& candidate = sites[site];
    const ProbeSite& around = sites[candidate.parent];
    if (Counts(candidate, loops) || candidate.parent == 0 || !Counts(around, loops)) continue;
    const double of_parent = TicksOfEntry(readings, candidate.parent);
    if (of_parent < least_ticks) continue;
    if (of_parent * around.entries / candidate.entries < least_ticks) continue;
    inside.insert(candidate.place.ref);
  }
  return inside;
}

std::vector<ProfileLine> LinesOfSamples(std::size_t nodes, const ProfileMap& map,
                                        std::span<const std::uint32_t> offsets) {
  std::map<ProfilePlace, std::uint64_t> seen;
  for (TreeRef ref = 0; ref < nodes; ++ref) seen[{.ref = ref}] = 0;
  for (const std::uint32_t offset : offsets) {
    const auto after =
        std::ranges::upper_bound(map.spans, std::int64_t{offset}, {}, &CodeSpan::begin);
    const bool is_outside = after == map.spans.begin();
    ++seen[is_outside ? ProfilePlace{.part = ProfilePart::kOutside} : std::prev(after)->place];
  }
  std::vector<ProfileLine> lines;
  for (const auto& [place, count] : seen) {
    const ShareInterval interval = IntervalOf(count, offsets.size());
    ProfileLine line{.place = place,
                     .share = Ratio(count, offsets.size()),
                     .low = interval.low,
                     .high = interval.high,
                     .samples = static_cast<double>(count)};
    const auto fused = std::ranges::find(map.fused, place.ref, &std::pair<TreeRef, TreeRef>::first);
    if (place.part == ProfilePart::kNode && fused != map.fused.end()) {
      line.fused_into = fused->second;
    }
    lines.push_back(line);
  }
  Sort(lines);
  return lines;
}

ShareInterval IntervalOf(std::uint64_t seen, std::uint64_t all) {
  if (all == 0) return {.low = 0, .high = 1};
  constexpr double kZ = 1.959964;  // 95 % of a normal distribution
  const auto n = static_cast<double>(all);
  const double share = static_cast<double>(seen) / n;
  const double middle = share + kZ * kZ / (2 * n);
  const double half = kZ * std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n));
  const double scale = 1 + kZ * kZ / n;
  return {.low = std::clamp((middle - half) / scale, 0.0, share),
          .high = std::clamp((middle + half) / scale, share, 1.0)};
}

}  // namespace loopfleet::worker
