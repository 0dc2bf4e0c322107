#pragma once
// Audit: whether two workers of one hardware class say the same about one tree, and what it means
// if they do not. Pure functions over plain values; docs/MEASUREMENT.md tells the rule.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "common/job/measurement.h"

namespace loopfleet::coordinator {

// What one worker measured. Its interval counts for no more than kMostCredit to each side of the
// median: a wide one would agree with whatever it is compared with.
struct Opinion {
  Uuid worker;
  std::string name;
  JobId job;  // whose outcome it is
  double low_ns = 0;
  double high_ns = 0;
};
inline constexpr double kMostCredit = 0.03;
Opinion OpinionOf(const Uuid& worker, std::string name, JobId job, const Measurement& measurement);

// Intervals that are further apart than this, relative, disagree: what canaries of arithmetic are
// allowed, too.
inline constexpr double kAuditTolerance = 0.10;
bool Agree(const Opinion& a, const Opinion& b);

// Of three, the one that disagrees with the two others, which agree; none: all agree, or nobody
// knows.
struct Odd {
  std::size_t which = 0;
  bool is_quicker = false;  // than the others say
  friend bool operator==(const Odd&, const Odd&) = default;
};
std::optional<Odd> OddOne(const std::vector<Opinion>& three);

// Which jobs are audited: so many of 10,000, by a hash of their id, so that nobody chooses.
bool IsAudited(JobId job, std::uint32_t per_10000);

// A worker is not believed any more once its last kRemembered audits have kQuickStrikes in which it
// was the odd one that was quicker, or kStrikes in which it was the odd one. What disturbs makes
// kernels slower, so honest workers are the slow odd one now and then (in 2 % of audits), and the
// quick one hardly ever (0.07 %): docs/MEASUREMENT.md has what follows.
class AuditRecord {
 public:
  static constexpr std::size_t kRemembered = 8;
  static constexpr std::size_t kQuickStrikes = 3;
  static constexpr std::size_t kStrikes = 5;

  enum class Came : std::uint8_t { kConfirmed, kDisputed, kSlowOdd, kQuickOdd };
  // Of a worker that comes, or that somebody has looked at: what came before is forgotten.
  void Begin(Instant now);
  void Note(Came came, Instant now);
  bool IsConvicted() const { return QuickStrikes() >= kQuickStrikes || Strikes() >= kStrikes; }
  // Of one that is convicted: until the audit before the first of its strikes it is believed.
  Instant BelievedUntil() const;

  // Of the last kRemembered that were settled.
  std::size_t Strikes() const;
  std::size_t remembered() const { return last_.size(); }

  std::uint32_t audits() const { return audits_; }
  std::uint32_t disputes() const { return disputes_; }

 private:
  struct Settled {
    Came came = Came::kConfirmed;
    Instant at{};
  };
  std::size_t QuickStrikes() const;

  std::deque<Settled> last_;  // at most kRemembered; disputes that nobody settled are not in it
  Instant believed_until_{};  // the last settled one that is not in it any more
  std::uint32_t audits_ = 0;
  std::uint32_t disputes_ = 0;
};

}  // namespace loopfleet::coordinator
