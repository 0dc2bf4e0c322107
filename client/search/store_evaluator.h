#pragma once
// StoreEvaluator: answers from a database file, without any hardware: for simulations, and for
// searches that are to be repeatable. A tree that is not in the file is NOT_FOUND.
//
// Several outcomes of a tree: the first figure counts, so measuring the winners again does not
// change what a later search over the file sees; a failure, such as a CUT, counts where there is
// none. Figures in doubt do not count. Conditions are not mixed: of the hardware classes, compilers
// and policies under which a benchmark was measured, with one thread and warm caches, one answers.
// As in a live search, its class is that of the first figure of the tree that is asked for first,
// the untuned one. Of several with that class and a figure of that tree, or if it has none of all,
// the one with the most trees answers.

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "client/search/evaluator.h"
#include "common/base/clock.h"
#include "common/base/result.h"

namespace loopfleet::storage {
class StoreReader;
}

namespace loopfleet::client {

class StoreEvaluator : public Evaluator {
 public:
  static Result<std::unique_ptr<StoreEvaluator>> Open(const std::string& file);
  ~StoreEvaluator() override;

  Answer<void> Send(std::span<const Trial> trials) override;
  Answer<std::vector<Outcome>> Receive() override;

 private:
  using Outcomes = std::map<looptree::TreeKey, Outcome>;

  explicit StoreEvaluator(std::unique_ptr<storage::StoreReader> reader);
  // Reads all outcomes of the benchmark when it is first asked for, which is for its `start`.
  Answer<const Outcomes*> OutcomesOf(const looptree::Source& source,
                                     const looptree::TreeKey& start);

  Status ReadDoubts();
  Result<bool> IsInDoubt(const Outcome& outcome);

  std::unique_ptr<storage::StoreReader> reader_;
  // What names each figure in doubt: as storage::FigureName.
  std::set<std::tuple<looptree::TreeKey, std::string, WallTime>> doubted_;
  std::map<std::string, Outcomes> known_;  // by benchmark
  std::deque<std::vector<Outcome>> sent_;
};

}  // namespace loopfleet::client
