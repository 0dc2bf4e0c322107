#pragma once
// Search: runs explorations of benchmarks side by side, which share an evaluator in turns, and
// keeps the winners of each. Two batches are always under way, so the fleet does not wait for a
// strategy. With limits on evaluations only, the same figures lead to the same choice.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/confirmation.h"
#include "client/search/evaluator.h"
#include "client/search/exploration.h"
#include "common/base/clock.h"

namespace loopfleet::client {

struct SearchLimits {
  std::optional<double> seconds;             // of the whole search; what is under way then is used
  std::optional<std::uint64_t> evaluations;  // of each exploration
  std::size_t in_flight = 64;                // schedules under way, of all explorations
  double cut_factor = 4;                     // CutAbove
  std::size_t winners = 3;                   // of each exploration
};

class Search {
 public:
  Search(Evaluator& evaluator, const Clock& clock, const SearchLimits& limits)
      : evaluator_(evaluator), clock_(clock), limits_(limits) {}

  void Add(Exploration exploration);

  // Until a limit is reached or nothing is left to propose. After an error, what was found until
  // then can be read. `on_batch` is called after each batch.
  Answer<void> Run(const std::function<void()>& on_batch = [] {});

  struct Lane {
    Lane(Exploration explores, std::size_t most_winners)
        : exploration(std::move(explores)), winners(most_winners) {}
    Exploration exploration;
    Winners winners;                // of one hardware class, as all its figures are
    std::optional<Winner> untuned;  // the first tree; nullopt: it has no figure
    std::uint64_t flop_count = 0;
    std::string hardware_class;             // of the first figure; figures of others are not used
    std::uint64_t other_hardware = 0;       // figures not used
    std::optional<double> instructions_oz;  // of a program after -Oz
    std::string failure;                    // what the last outcome without a figure said
    std::uint64_t under_way = 0;
    bool is_exhausted = false;
  };
  const std::vector<Lane>& lanes() const { return lanes_; }
  double seconds() const;                         // since Run began
  Nanos proposing() const { return proposing_; }  // spent by the strategies

 private:
  struct Asked {
    Trial trial;
    std::size_t lane = 0;
    int tries = 0;
    std::optional<double> cost;  // nullopt: under way
  };
  // Told to the strategies as a whole, in the order of asking: so a schedule that has to be tried
  // again changes no choice.
  using Batch = std::vector<Asked>;
  struct Request {
    Batch* batch = nullptr;
    std::vector<std::size_t> places;
  };

  Batch NextBatch();
  // How many schedules the next batch may have, of all lanes.
  std::size_t MostNow() const;
  void AskLane(std::size_t lane, std::size_t most, Batch& batch);
  Answer<void> SendTrials(Batch& batch, std::vector<std::size_t> places);
  // The oldest request's outcomes. Sends again what they say nothing about.
  Answer<void> ReceiveTrials();
  void TellBatch(Batch batch);
  // nullopt: it has to be tried again.
  std::optional<double> Read(const Asked& asked, const Outcome& outcome);

  Evaluator& evaluator_;
  const Clock& clock_;
  const SearchLimits limits_;
  std::vector<Lane> lanes_;
  std::deque<Batch> batches_;     // under way, in the order of asking
  std::deque<Request> requests_;  // in the order of sending
  Instant start_{};
  Nanos proposing_{0};
};

}  // namespace loopfleet::client
