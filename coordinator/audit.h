#pragma once
// Audit: whether two workers of one hardware class say the same about one tree, and what it means
// if they do not. Pure functions over plain values; docs/MEASUREMENT.md tells the rule.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "common/job/measurement.h"

namespace loopfleet::coordinator {

// What one worker measured.
struct Opinion {
  Uuid worker;
  std::string name;
  JobId job;  // whose outcome it is
  double low_ns = 0;
  double high_ns = 0;
};
Opinion OpinionOf(const Uuid& worker, std::string name, JobId job, const Measurement& measurement);

// Intervals that are further apart than this, relative, disagree: what canaries of arithmetic are
// allowed, too.
inline constexpr double kAuditTolerance = 0.10;
bool Agree(const Opinion& a, const Opinion& b);

// Of three, the one that disagrees with the two others, which agree; none: all agree, or nobody
// knows.
std::optional<std::size_t> OddOne(const std::vector<Opinion>& three);

// Which jobs are audited: so many of 10,000, by a hash of their id, so that nobody chooses.
bool IsAudited(JobId job, std::uint32_t per_10000);

// A worker is not believed any more once it was the odd one in kStrikes of its last kRemembered
// audits. One is no proof: 5 % of honest measurements on virtual machines disagree by more than the
// tolerance (docs/MEASUREMENT.md), half of them on the other side.
class AuditRecord {
 public:
  static constexpr std::size_t kRemembered = 4;
  static constexpr std::size_t kStrikes = 3;

  enum class Came : std::uint8_t { kConfirmed, kDisputed, kOdd };
  void Note(Came came);
  bool IsConvicted() const;
  void Clear() { last_.clear(); }

  std::uint32_t audits() const { return audits_; }
  std::uint32_t disputes() const { return disputes_; }

 private:
  std::deque<Came> last_;  // at most kRemembered; disputes that nobody settled are not in it
  std::uint32_t audits_ = 0;
  std::uint32_t disputes_ = 0;
};

}  // namespace loopfleet::coordinator
