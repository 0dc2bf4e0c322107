#include "tests/simulation/planted/planted_audit_bug.h"

#include <set>
#include <utility>

namespace loopfleet::simulation {
namespace {

using coordinator::AuditCase;
using coordinator::Core;
using coordinator::Effects;

// Inside the core, behind its back.
coordinator::State& StateOf(const Core& core) {
  return const_cast<coordinator::State&>(core.state());
}

class ForgetsWhoMeasured final : public PlantedBug {
  void OnEffects(Effects&, const Core& core) override {
    for (auto& [job, audit] : StateOf(core).audits.cases) {
      for (coordinator::Opinion& opinion : audit.opinions) opinion.worker = {};
    }
  }
};

// When two disagree, each is taken for the other.
class SwapsOpinions final : public PlantedBug {
  void OnEffects(Effects&, const Core& core) override {
    for (auto& plan : StateOf(core).audits.plans) {
      AuditCase& audit = plan.what;
      if (audit.opinions.size() != 2 || !swapped_.insert(audit.opinions[1].job).second) continue;
      std::swap(audit.opinions[0].worker, audit.opinions[1].worker);
      std::swap(audit.opinions[0].name, audit.opinions[1].name);
    }
  }
  std::set<JobId> swapped_;
};

class ForgivesAtOnce final : public PlantedBug {
  void OnEffects(Effects&, const Core& core) override {
    coordinator::State& state = StateOf(core);
    for (const auto& [id, known] : state.workers.all()) {
      if (known.refuted_by.empty()) continue;
      coordinator::Worker& worker = *state.workers.Find(id);
      worker.refuted_by.clear();
      if (worker.peer) state.workers.SetState(worker, coordinator::StateOf(worker));
    }
  }
};

template <class Bug>
PlantedBugInfo Info(std::string_view name, std::string_view what) {
  return {.name = name, .what = what, .make = [] { return std::make_unique<Bug>(); }};
}

}  // namespace

std::vector<PlantedBugInfo> PlantedAuditBugs() {
  return {
      Info<ForgetsWhoMeasured>("audit_oneself", "an audit goes to the worker that it is about"),
      Info<SwapsOpinions>("quarantine_the_honest",
                          "of workers that disagree an honest one is taken for the odd one"),
      Info<ForgivesAtOnce>("forgive_at_once", "who was convicted by audits gets jobs all the same"),
  };
}

}  // namespace loopfleet::simulation
