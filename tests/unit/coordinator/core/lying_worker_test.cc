// Workers whose every figure is a plausible lie, beside honest ones with the noise of real
// measurements: how soon audits find the former, and how often they wrong the latter.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/rules/audit.h"
#include "tests/unit/coordinator/core/core_harness.h"
#include "tests/unit/coordinator/core/honest_noise.h"

namespace loopfleet::coordinator {
namespace {

// docs/MEASUREMENT.md, "Experiments": two results of one schedule, of any grade, in quiet.
TEST(HonestNoise, IsAsMeasured) {
  HonestNoise noise(1);
  std::vector<double> apart;
  for (int i = 0; i < 200'000; ++i) {
    const double a = noise.Draw().slowdown;
    const double b = noise.Draw().slowdown;
    apart.push_back(std::max(a, b) / std::min(a, b) - 1);
  }
  std::ranges::sort(apart);
  EXPECT_NEAR(apart[apart.size() / 2], 0.0098, 0.0005);
  EXPECT_NEAR(apart[apart.size() * 9 / 10], 0.092, 0.004);
}

struct Member {
  PeerId peer;
  std::uint8_t id = 0;
  double factor = 1;  // of what it measures, it says so much
};

// Workers of one class under steady load: there are always more jobs than they have room for.
class Fleet : public Harness {
 public:
  Fleet(const Limits& some_limits, std::size_t size, double factor, std::uint64_t seed)
      : Harness(some_limits), noise_(seed) {
    // Which jobs are audited goes by their ids: others for each seed.
    Recovered before = disk.Recover();
    before.next_batch = 1 + seed * 1'000;
    core = std::make_unique<Core>(Core::Options{.limits = limits, .name = "test"});
    Give(std::move(before));
    ClientHello("c", 1);
    for (std::size_t i = 0; i < size; ++i) {
      members_.push_back({.peer = fmt::format("w{}", i), .id = static_cast<std::uint8_t>(50 + i)});
      WorkerHello(members_.back().peer, members_.back().id, {.credit = 2});
    }
    members_.front().factor = factor;
  }

  // Until so many jobs of the client are measured, or the first worker is in quarantine.
  void Work(std::uint64_t jobs) {
    constexpr std::size_t kRow = 40;
    constexpr std::size_t kMore = 100;
    for (int idle_rounds = 0; measured_ < jobs && !IsFound() && idle_rounds < 100;) {
      const std::uint64_t before = measured_;
      if (core->state().ready.size() < kRow) {
        std::vector<JobWish> more;
        for (std::size_t i = 0; i < kMore; ++i) {
          more.push_back({.tree = static_cast<std::uint8_t>(noise_.Below(200)),
                          .freshness = Freshness::kMeasureAnew});
        }
        Submit("c", more);
        Write();
      }
      for (const Member& member : members_) {
        const auto leases = TakeLeases(member.peer);
        for (const wire::Lease& lease : leases) Answer(member, lease);
        if (leases.empty()) Heartbeat(member.peer);
      }
      idle_rounds = measured_ == before ? idle_rounds + 1 : 0;
      Write();
      Pass(milliseconds(100));
      Write();
      commands.erase(std::remove_if(commands.begin(), commands.end(),
                                    [](const SendToWorker& sent) {
                                      return !std::holds_alternative<wire::Leases>(sent.command);
                                    }),
                     commands.end());
    }
  }
  bool IsFound() const { return IsQuarantined(members_.front()); }
  std::size_t Quarantined() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        members_, [&](const Member& member) { return IsQuarantined(member); }));
  }
  std::uint64_t measured() const { return measured_; }
  std::uint64_t audits() const { return audits_; }

 private:
  bool IsQuarantined(const Member& member) const {
    return core->state().workers.Find(Named(member.id))->state == wire::WorkerState::kQuarantined;
  }
  void Answer(const Member& member, const wire::Lease& lease) {
    Evaluation evaluation = GoodEvaluation(lease);
    const double truth = 1'000.0 * (1 + evaluation.tree_key->bytes[0]);
    evaluation.verdict = noise_.Draw().MeasurementOf(truth, member.factor);
    const bool is_asked = core->state().batches.Find(lease.job.batch)->client == Named(1);
    ++(is_asked ? measured_ : audits_);
    ReportEvaluation(member.peer, lease, std::move(evaluation));
  }

  HonestNoise noise_;
  std::vector<Member> members_;
  std::uint64_t measured_ = 0;
  std::uint64_t audits_ = 0;
};

struct Lie {
  double factor = 1;
  std::size_t fleet = 4;
  std::uint64_t most_jobs = 1'500;  // of the fleet
};

class LyingWorkerTest : public testing::TestWithParam<Lie> {};

// 2 % of audits, twenty fleets of each kind. In a larger one the liar has a smaller share of them.
TEST_P(LyingWorkerTest, IsFoundInABusyFleet) {
  const Lie& lie = GetParam();
  std::vector<std::uint64_t> took;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Fleet fleet({}, lie.fleet, lie.factor, seed);
    fleet.Work(lie.most_jobs);
    EXPECT_TRUE(fleet.IsFound()) << "seed " << seed;
    EXPECT_EQ(fleet.Quarantined(), 1U) << "seed " << seed;
    // What it measured since it was believed is flagged.
    EXPECT_EQ(fleet.disk.suspected.size(), 1U) << "seed " << seed;
    took.push_back(fleet.measured());
  }
  std::ranges::sort(took);
  fmt::print("x{} of {}: found after {} jobs (median), {} at most\n", lie.factor, lie.fleet,
             took[took.size() / 2], took.back());
}
INSTANTIATE_TEST_SUITE_P(Factors, LyingWorkerTest,
                         testing::Values(Lie{.factor = 0.7, .fleet = 3},
                                         Lie{.factor = 0.85, .fleet = 3}, Lie{.factor = 0.7},
                                         Lie{.factor = 0.85},
                                         Lie{.factor = 0.7, .fleet = 8, .most_jobs = 4'500},
                                         Lie{.factor = 0.85, .fleet = 8, .most_jobs = 4'500}),
                         [](const auto& one) {
                           return fmt::format("Says{}PercentBeside{}",
                                              static_cast<int>(std::lround(100 * one.param.factor)),
                                              one.param.fleet - 1);
                         });

// A fleet that never has an idle moment is audited all the same, and no more than was asked for.
TEST(BusyFleet, IsAudited) {
  Fleet fleet({}, 4, 1, 1);
  fleet.Work(5'000);
  EXPECT_GT(fleet.audits(), 5'000U * 15 / 1'000);
  EXPECT_LT(fleet.audits(), 5'000U * 30 / 1'000);
  EXPECT_LT(fleet.core->state().audits.size(), 20U);  // none waits for long
}

// Of honest workers. Each job is audited: 10,000 jobs have as many audits as 500,000 have at 2 %.
TEST(HonestFleet, IsNotPutAway) {
  Limits limits;
  limits.audits_per_10000 = 10'000;
  limits.grants_per_audit = 1;
  Fleet fleet(limits, 4, 1, 1);
  fleet.Work(10'000);
  EXPECT_GT(fleet.audits(), 8'000U);
  EXPECT_EQ(fleet.Quarantined(), 0U);
}

// The rule alone, for longer: 20 million jobs at 2 % are 400,000 audits.
TEST(HonestFleet, IsWrongedLessThanOnceInAMillionJobs) {
  constexpr std::uint64_t kMillions = 20;
  constexpr std::uint64_t kAudits = kMillions * 1'000'000 / 50;
  constexpr std::size_t kWorkers = 4;
  HonestNoise noise(1);
  std::array<AuditRecord, kWorkers> records;
  std::uint64_t wronged = 0;
  std::uint64_t settled = 0;
  std::uint64_t slow = 0;
  std::uint64_t quick = 0;
  const auto note = [&](std::size_t who, AuditRecord::Came came) {
    records[who].Note(came, Instant{});
    ++settled;
    if (came == AuditRecord::Came::kSlowOdd) ++slow;
    if (came == AuditRecord::Came::kQuickOdd) ++quick;
    if (!records[who].IsConvicted()) return;
    ++wronged;
    records[who].Begin(Instant{});
  };
  for (std::uint64_t audit = 0; audit < kAudits; ++audit) {
    std::array<std::size_t, 3> who{};
    who[0] = noise.Below(kWorkers);
    do who[1] = noise.Below(kWorkers);
    while (who[1] == who[0]);
    do who[2] = noise.Below(kWorkers);
    while (who[2] == who[0] || who[2] == who[1]);
    std::vector<Opinion> opinions;
    for (std::size_t i = 0; i < 3; ++i) {
      opinions.push_back(OpinionOf({}, "", {}, noise.Draw().MeasurementOf(1'000, 1)));
      if (i == 1 && Agree(opinions[0], opinions[1])) break;
    }
    if (opinions.size() == 2) {
      note(who[0], AuditRecord::Came::kConfirmed);
      note(who[1], AuditRecord::Came::kConfirmed);
      continue;
    }
    const auto odd = OddOne(opinions);
    if (!odd) continue;  // nobody knows
    for (std::size_t i = 0; i < 3; ++i) {
      note(who[i], i != odd->which     ? AuditRecord::Came::kConfirmed
                   : odd->is_quicker ? AuditRecord::Came::kQuickOdd
                                     : AuditRecord::Came::kSlowOdd);
    }
  }
  fmt::print("of {} settled opinions {:.2f} % were slow odd ones, {:.3f} % quick ones; {} wronged\n",
             settled, 100.0 * static_cast<double>(slow) / static_cast<double>(settled),
             100.0 * static_cast<double>(quick) / static_cast<double>(settled), wronged);
  EXPECT_LE(wronged, kMillions);
}

}  // namespace
}  // namespace loopfleet::coordinator
