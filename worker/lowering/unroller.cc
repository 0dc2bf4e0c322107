#include "worker/lowering/unroller.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::worker {

bool Unroller::IsNeeded() const {
  return std::ranges::any_of(plan_.loops, [](const PlanLoop& loop) {
    return loop.annotation == looptree::Annotation::kUnroll && loop.extents.front() > loop.step;
  });
}

std::int64_t Unroller::Copies(LoopId loop, std::int64_t iterations, std::int64_t scale) {
  if (!is_chosen_) return 1;
  const std::int64_t copies = std::min(factors_[loop], iterations);
  Written& written = written_[loop];
  if (copies * scale >= written.copies) {
    written = {.copies = copies * scale, .iterations = iterations * scale};
  }
  return copies;
}

void Unroller::EnterIteration(LoopId loop, std::int64_t iterations) {
  if (is_chosen_) return;
  open_.push_back({.loop = loop, .iterations = iterations, .instructions = count_, .inner = {}});
}

void Unroller::LeaveIteration() {
  if (is_chosen_) return;
  LF_CHECK(!open_.empty(), "no iteration is open");
  Place closed = std::move(open_.back());
  open_.pop_back();
  closed.instructions = count_ - closed.instructions;
  (open_.empty() ? places_ : open_.back().inner).push_back(std::move(closed));
}

std::uint64_t Unroller::SizeOf(const Place& place) const {
  std::uint64_t iteration = place.instructions;
  for (const Place& inner : place.inner) iteration += SizeOf(inner) - inner.instructions;
  const std::int64_t copies = std::min(factors_[place.loop], place.iterations);
  // Iterations that are left over are a loop of their own.
  const bool has_rest = place.iterations % copies != 0;
  return iteration * static_cast<std::uint64_t>(copies + (has_rest ? 1 : 0));
}

void Unroller::AddIds(const std::vector<Place>& places,
                      std::map<LoopId, std::vector<const Place*>>& ids) {
  for (const Place& place : places) {
    ids[place.loop].push_back(&place);
    AddIds(place.inner, ids);
  }
}

void Unroller::Choose(const UnrollLimits& limits) {
  std::map<LoopId, std::vector<const Place*>> ids;
  AddIds(places_, ids);
  // Ids ascend inwards.
  for (auto at = ids.rbegin(); at != ids.rend(); ++at) {
    const auto& [loop, places] = *at;
    const auto fits = [&, &factor = factors_[loop], &here = places](std::int64_t wanted) {
      factor = wanted;
      std::uint64_t kernel = count_;
      for (const Place& place : places_) kernel += SizeOf(place) - place.instructions;
      return kernel <= limits.kernel && std::ranges::all_of(here, [&](const Place* place) {
               return SizeOf(*place) <= limits.loop;
             });
    };
    std::int64_t all = 1;
    for (const Place* place : places) all = std::max(all, place->iterations);
    if (all == 1 || fits(all)) continue;
    auto factor = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(all - 1)));
    while (factor > 1 && !fits(factor)) factor /= 2;
    factors_[loop] = factor;
  }
  is_chosen_ = true;
  count_ = 0;
}

}  // namespace loopfleet::worker
