#include "coordinator/core/tables/worker_registry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/random.h"

namespace loopfleet::coordinator {
namespace {

using wire::WorkerState;

constexpr WorkerState kStates[] = {WorkerState::kReady, WorkerState::kDraining, WorkerState::kLost,
                                   WorkerState::kQuarantined};

Uuid Numbered(std::uint64_t number) {
  Uuid uuid;
  uuid.bytes[0] = static_cast<std::uint8_t>(number);
  uuid.bytes[15] = 1;
  return uuid;
}

wire::WorkerHello SomeHello(SplitMix64& random, std::uint64_t number) {
  wire::WorkerHello hello{
      .worker = Numbered(number),
      .hardware = {.device = random.Below(3) == 0 ? DeviceKind::kCuda : DeviceKind::kCpu,
                   .host = fmt::format("host{}", random.Below(4))},
      .max_threads = 1 + static_cast<std::uint32_t>(random.Below(2))};
  for (int label = 0; label < 3; ++label) {
    if (random.Below(2) == 0) hello.labels.push_back(fmt::format("label{}", label));
  }
  return hello;
}

Demand SomeDemand(SplitMix64& random) {
  Demand demand{.placement = random.Below(3) == 0 ? Placement::kCuda : Placement::kCpu,
                .threads = 1 + static_cast<std::uint32_t>(random.Below(2))};
  if (random.Below(4) == 0) demand.only = Numbered(random.Below(12));
  if (random.Below(3) == 0) demand.labels.push_back(fmt::format("host=host{}", random.Below(5)));
  for (int label = 0; label < 3; ++label) {
    if (random.Below(3) == 0) demand.labels.push_back(fmt::format("label{}", label));
  }
  return demand;
}

// What is known by shapes and hosts is what comparing the demand with each worker would say.
TEST(WorkerRegistry, SaysWhoServesADemandAsEachWorkerWould) {
  SplitMix64 random(20);
  WorkerRegistry workers;
  int served = 0;
  for (int step = 0; step < 2'000; ++step) {
    const std::uint64_t number = random.Below(12);
    Worker* known = workers.Find(Numbered(number));
    if (known == nullptr || random.Below(4) == 0) {
      workers.Welcome(fmt::format("peer{}", number), SomeHello(random, number), Instant{});
    } else if (random.Below(6) == 0) {
      workers.Remove(known->id());
    } else {
      known->said = random.Below(2) == 0 ? wire::DrainState::kDraining : wire::DrainState::kServing;
      workers.SetState(*known, kStates[random.Below(4)]);
    }
    workers.CheckInvariants();

    const Demand demand = SomeDemand(random);
    const auto any = [&](const Demand& of, std::vector<WorkerState> states) {
      return std::ranges::any_of(workers.all(), [&](const auto& entry) {
        return std::ranges::find(states, entry.second.state) != states.end() &&
               Serves(entry.second.supply(), of);
      });
    };
    const bool may_be_resumed = std::ranges::any_of(workers.all(), [&](const auto& entry) {
      const Worker& worker = entry.second;
      return worker.state == WorkerState::kDraining && worker.said == wire::DrainState::kServing &&
             Serves(worker.supply(), demand);
    });
    EXPECT_EQ(workers.IsServed(demand),
              any(demand, {WorkerState::kReady, WorkerState::kQuarantined}) || may_be_resumed);
    Demand anywhere = demand;
    anywhere.only = {};
    EXPECT_EQ(workers.HasReady(demand), any(anywhere, {WorkerState::kReady}));
    served += workers.IsServed(demand) ? 1 : 0;
  }
  EXPECT_GT(served, 200);
  EXPECT_LT(served, 1'800);
}

}  // namespace
}  // namespace loopfleet::coordinator
