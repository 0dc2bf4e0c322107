#pragma once
// The lines of a profile, from what was counted or sampled. Pure functions.

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "common/job/profile.h"
#include "kernel/profile_map.h"

namespace loopfleet::worker {

// A site's two cells, over all runs since they were 0.
struct ProbeCount {
  std::uint64_t ticks = 0;
  std::uint64_t entries = 0;
};
// By site. The first one, the whole kernel, was entered once a run.
using ProbeReading = std::vector<ProbeCount>;

// Ticks of one entry, on average over the readings; 0: it was not entered.
double TicksOfEntry(std::span<const ProbeReading> readings, std::size_t site);

// Of the roots and the loops `loops`, with the rest of the kernel as kOutside. Shares are the
// median over the readings, with the interval that holds it with 95 %. At least one reading, each
// with the same sites.
std::vector<ProfileLine> LinesOfReadings(std::span<const ProbeSite> sites,
                                         const std::set<looptree::TreeRef>& loops,
                                         std::span<const ProbeReading> readings);

// Drops lines beyond kMostProfileLines, and says so in the note.
void KeepMost(Profile& profile);

// The loops to count next: those in a root or a loop of `loops` that were not counted yet and take
// at least `least_ticks` an entry, as far as the one around them tells.
std::set<looptree::TreeRef> LoopsInside(std::span<const ProbeSite> sites,
                                        const std::set<looptree::TreeRef>& loops,
                                        std::span<const ProbeReading> readings, double least_ticks);

// One for each of `nodes` nodes of the tree, whether it was seen or not, and one for each other
// place that was. `offsets`: bytes into the code, or anything beyond it for kOutside.
std::vector<ProfileLine> LinesOfSamples(std::size_t nodes, const ProfileMap& map,
                                        std::span<const std::uint32_t> offsets);

// Wilson's interval, which holds the true share of what was seen `seen` times of `all` with 95 %.
struct ShareInterval {
  double low = 0;
  double high = 0;
};
ShareInterval IntervalOf(std::uint64_t seen, std::uint64_t all);

}  // namespace loopfleet::worker
