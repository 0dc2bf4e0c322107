#include "worker/cpu/plan_places.h"

#include <algorithm>
#include <utility>

#include "worker/lowering/loop_nest.h"

namespace loopfleet::worker {
namespace {

using looptree::kNoParent;
using looptree::TreeRef;

class Walker {
 public:
  Walker(const KernelPlan& plan, const LoopOrigins& origins, const VectorShape& shape)
      : plan_(plan), origins_(origins), shape_(shape) {}

  PlanPlaces Walk() {
    places_.loops.resize(plan_.loops.size(), {.part = ProfilePart::kOutside});
    for (LoopId id = 0; id < plan_.loops.size(); ++id) {
      if (plan_.loops[id].ref) places_.loops[id] = {.ref = origins_.of[*plan_.loops[id].ref]};
    }
    places_.sites.push_back({.place = {.part = ProfilePart::kOutside}});
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) VisitRoot(i);
    return std::move(places_);
  }

 private:
  void VisitRoot(std::size_t index) {
    const Step& step = plan_.steps[index];
    const bool packs = IsPacking(step);
    if (packs) {
      SetAll({&step, 1}, {.ref = RootAfter(index), .part = ProfilePart::kPack});
    } else {
      Visit({&step, 1});
    }
    const ProfilePlace place =
        packs ? ProfilePlace{.ref = RootAfter(index), .part = ProfilePart::kPack}
              : ProfilePlace{.ref = RootOf(RefOf(step))};
    places_.root_sites.push_back(AddSite({.place = place, .is_root = true}));
    const auto* loop = std::get_if<LoopStep>(&step.what);
    if (loop != nullptr && !packs) {
      AddSites(*loop, {.site = places_.root_sites.back(), .ref = OriginOf(loop->loop)});
    }
  }

  bool IsPacking(const Step& step) const {
    const auto* loop = std::get_if<LoopStep>(&step.what);
    return loop != nullptr && !plan_.loops[loop->loop].ref;
  }

  TreeRef OriginOf(LoopId id) const {
    return plan_.loops[id].ref ? origins_.of[*plan_.loops[id].ref] : kNoParent;
  }

  // A node of the job's tree inside the step, or the step's own.
  TreeRef RefOf(const Step& step) const {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) return OriginOf(loop->loop);
    return LeafOf(std::get<Body>(step.what).statements.back());
  }

  TreeRef LeafOf(const Statement& statement) const {
    return origins_.tree.LeafOf(statement.node).value_or(0);
  }

  TreeRef RootOf(TreeRef ref) const {
    const auto nodes = origins_.tree.nodes();
    while (nodes[ref].parent != kNoParent) ref = nodes[ref].parent;
    return ref;
  }

  // The root that panels are made for.
  TreeRef RootAfter(std::size_t index) const {
    while (index + 1 < plan_.steps.size() && IsPacking(plan_.steps[index])) ++index;
    return RootOf(RefOf(plan_.steps[index]));
  }

  void SetAll(std::span<const Step> steps, const ProfilePlace& place) {
    for (const Step& step : steps) {
      if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
        places_.loops[loop->loop] = place;
        SetAll(loop->prepare, place);
        SetAll(loop->steps, place);
        continue;
      }
      for (const Statement& statement : std::get<Body>(step.what).statements) {
        places_.statements[&statement] = place;
      }
    }
  }

  // `prepare` has one step for each accumulator, and the nodes of their statements say whose.
  void VisitPrepare(const std::vector<Step>& prepare) {
    for (const Step& step : prepare) {
      const Step* inside = &step;
      while (const auto* loop = std::get_if<LoopStep>(&inside->what)) inside = &loop->steps.front();
      const TreeRef ref = LeafOf(std::get<Body>(inside->what).statements.back());
      SetAll({&step, 1}, {.ref = ref, .part = ProfilePart::kZero});
    }
  }

  void Visit(std::span<const Step> steps) {
    for (const Step& step : steps) {
      if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
        VisitPrepare(loop->prepare);
        Visit(loop->steps);
        continue;
      }
      const Body& body = std::get<Body>(step.what);
      for (const Statement& statement : body.statements) {
        places_.statements[&statement] = {.ref = LeafOf(statement)};
      }
      if (const auto product = FusedProduct(body)) {
        const TreeRef into = LeafOf(body.statements.back());
        places_.fused.emplace_back(LeafOf(body.statements[*product]), into);
        places_.statements[&body.statements[*product]] = {.ref = into};
      }
    }
  }

  // The site and the job's loop around what is visited.
  struct Around {
    std::size_t site = 0;
    TreeRef ref = kNoParent;
    double iterations = 1;  // of all loops since the site
  };

  std::size_t AddSite(ProbeSite site) {
    places_.sites.push_back(site);
    return places_.sites.size() - 1;
  }

  double IterationsOf(LoopId id) const {
    const PlanLoop& loop = plan_.loops[id];
    return static_cast<double>((loop.extents.front() + loop.step - 1) / loop.step);
  }

  // The sites of the loops inside `step`, whose own site is `around`.
  void AddSites(const LoopStep& step, Around around) {
    if (plan_.loops[step.loop].parallel && plan_.threads > 1) return;
    if (const auto nest = NestAt(step)) return AddSitesOfNest(*nest, around);
    around.iterations *= IterationsOf(step.loop);
    for (const Step& inside : step.steps) {
      const auto* loop = std::get_if<LoopStep>(&inside.what);
      if (loop != nullptr) AddSites(*loop, SiteFor(*loop, around));
    }
  }

  void AddSitesOfNest(const Nest& nest, Around around) {
    const std::size_t last = BlockLoopOf(plan_, nest, shape_).value_or(nest.loops.size() - 1);
    for (std::size_t level = 1; level <= last; ++level) {
      const LoopStep& outer = *nest.loops[level - 1];
      if (plan_.loops[outer.loop].parallel && plan_.threads > 1) return;
      around.iterations *= IterationsOf(outer.loop);
      around = SiteFor(*nest.loops[level], around);
    }
  }

  // A loop has a site if it stands in the plan where it stands in the job's tree.
  Around SiteFor(const LoopStep& step, const Around& around) {
    const TreeRef ref = OriginOf(step.loop);
    if (ref == kNoParent || ref == around.ref) return around;
    const TreeRef parent = origins_.tree.nodes()[ref].parent;
    if (parent == kNoParent || origins_.outermost[parent] != around.ref) return around;
    const std::size_t site =
        AddSite({.place = {.ref = ref},
                 .parent = static_cast<std::uint32_t>(around.site),
                 .entries = places_.sites[around.site].entries * around.iterations});
    places_.loop_sites[step.loop] = site;
    return {.site = site, .ref = ref};
  }

  const KernelPlan& plan_;
  const LoopOrigins& origins_;
  const VectorShape& shape_;
  PlanPlaces places_;
};

}  // namespace

PlanPlaces PlacesOf(const KernelPlan& plan, const LoopOrigins& origins, const VectorShape& shape) {
  return Walker(plan, origins, shape).Walk();
}

}  // namespace loopfleet::worker
