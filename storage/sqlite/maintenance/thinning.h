#pragma once
// Thinning: retention of raw samples. The samples of old results are taken away, all of them or all
// but every N-th; what was made of them (median, interval, grade, provenance, how many there were)
// stays. A pass goes over the results in steps (Store::Thin), each of them short and on disk as a
// whole, together with what the pass's row of `retention` says. So it may end anywhere.
//
// A result that is not what was written is passed over and stays as it is. One that has no more
// samples than the rule leaves is not changed: a rule may be applied any number of times.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "storage/result_index/result_keys.h"

namespace loopfleet::storage {

struct ThinningRule {
  WallTime measured_before{};    // of results that were measured before
  std::uint32_t keep_every = 0;  // of each so many samples one stays; 0: none
  std::string asked_by;          // for people: "loopfleet db thin"
};

// How many of a result's samples the rule leaves.
std::uint32_t SamplesLeft(const ThinningRule& rule, std::uint32_t samples_before);

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

// What a pass over everything would do. Changes nothing; a coordinator may be writing meanwhile.
//   kNotFound, kInvalid (not a loopfleet database, or of another version), kCorrupt, kSystem
Result<ThinningCount> CountThinning(const std::filesystem::path& path, const ThinningRule& rule);

}  // namespace loopfleet::storage
