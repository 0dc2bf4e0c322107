#pragma once
// Thinning: retention of raw samples. The samples of old results are taken away, all of them or all
// but every N-th; what was made of them (median, interval, grade, provenance, how many there were)
// stays. A pass goes over the results in steps (Store::Thin), each of them short and on disk as a
// whole, together with what the pass's row of `retention` says. So it may end anywhere.
//
// A result that is not what was written is passed over and stays as it is. One that has no more
// samples than the rule leaves is not changed: a rule may be applied any number of times.

#include <cstdint>
#include <utility>

#include "common/base/clock.h"
#include "storage/result_index/result_keys.h"
#include "storage/sqlite/tables/thinning_rule.h"

namespace loopfleet::storage {

struct ThinningCount {
  std::uint64_t results = 0;  // that have fewer samples by it
  std::uint64_t samples = 0;  // taken away
  std::uint64_t bytes = 0;    // that these took
  std::uint64_t damaged = 0;  // results that were passed over
};

// A pass. Store::Thin moves it on.
class Thinning {
 public:
  enum class Scope {
    kAll,  // every result
    kNew,  // behind what passes of rules as strict have seen to, up to where results are too new:
           // for passes that are made again and again
  };
  Thinning(ThinningRule rule, Scope scope) : rule_(std::move(rule)), scope_(scope) {}

  const ThinningRule& rule() const { return rule_; }
  const ThinningCount& count() const { return count_; }
  bool is_over() const { return is_over_; }
  std::int64_t id() const { return id_; }  // retention.id; 0: it has changed nothing

 private:
  friend class RetentionTable;

  ThinningRule rule_;
  Scope scope_;
  ThinningCount count_;
  bool is_over_ = false;
  std::int64_t id_ = 0;
  bool has_begun_ = false;
  WallTime begun_at_{};
  ResultId seen_ = 0;     // the last result that was looked at
  ResultId through_ = 0;  // the last old one of these
  std::uint32_t too_new_in_row_ = 0;
};

}  // namespace loopfleet::storage
