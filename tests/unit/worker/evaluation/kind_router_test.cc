#include "worker/evaluation/kind_router.h"

#include <gtest/gtest.h>

#include "worker/coordinator_link/lease_book.h"

namespace loopfleet::worker {
namespace {

// Holds its leases and does nothing about them.
class Holding final : public LeaseRunner {
 public:
  bool Accept(wire::Lease lease) override { return book_.Accept(std::move(lease), Instant{}); }
  void Drop(std::span<const LeaseId> leases) override { book_.Drop(leases); }
  std::vector<LeaseId> DropUnstarted() override { return book_.DropUnstarted(); }
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override {
    return book_.GiveBack(leases);
  }
  std::vector<wire::Report> TakeFinished() override { return book_.TakeFinished(); }
  std::vector<wire::HeldLease> Held() const override { return book_.Held(); }
  LeaseBook& book() { return book_; }

 private:
  LeaseBook book_{2};
};

wire::Lease LeaseOf(std::uint64_t number, std::string uri) {
  wire::Lease lease{.lease = {number}, .job = {.batch = {1}, .index = 0}};
  lease.spec.source = looptree::BenchmarkUri{std::move(uri)};
  return lease;
}

class KindRouterTest : public testing::Test {
 protected:
  KindRouterTest() {
    auto passes = std::make_unique<Holding>();
    passes_ = passes.get();
    std::vector<KindRouter::Route> routes;
    routes.push_back({.kind = TaskKind::kPasses, .runner = std::move(passes)});
    router_ = std::make_unique<KindRouter>(rest_, std::move(routes));
    EXPECT_TRUE(router_->Accept(LeaseOf(1, "benchmark://mm-v0/mm8_8_8")));
    EXPECT_TRUE(router_->Accept(LeaseOf(2, "generator://csmith-v0/7")));
    EXPECT_TRUE(router_->Accept(LeaseOf(3, "probe://peaks-v0")));
  }

  Holding rest_;
  Holding* passes_ = nullptr;
  std::unique_ptr<KindRouter> router_;
};

TEST_F(KindRouterTest, EachLeaseGoesToTheRunnerOfItsKind) {
  EXPECT_EQ(rest_.Held().size(), 2U);
  ASSERT_EQ(passes_->Held().size(), 1U);
  EXPECT_EQ(passes_->Held()[0].lease, LeaseId{2});
  EXPECT_EQ(router_->Held().size(), 3U);
  EXPECT_FALSE(router_->Accept(LeaseOf(4, "benchmark://mm-v0/mm8_8_8")));  // that one is full
  EXPECT_TRUE(router_->Accept(LeaseOf(4, "generator://csmith-v0/8")));
}

TEST_F(KindRouterTest, WhatIsAskedOfAllReachesAll) {
  for (Holding* runner : {&rest_, passes_}) {
    const auto waiting = runner->book().Next();
    ASSERT_TRUE(runner->book().Start(waiting->lease.lease));
    wire::Report report;
    report.lease = waiting->lease.lease;
    ASSERT_TRUE(runner->book().Finish(report));
  }
  EXPECT_EQ(router_->TakeFinished().size(), 2U);
  const std::vector<LeaseId> three = {LeaseId{3}};
  EXPECT_EQ(router_->GiveBack(three), three);
  EXPECT_TRUE(router_->Held().empty());
  ASSERT_TRUE(router_->Accept(LeaseOf(5, "generator://csmith-v0/7")));
  ASSERT_TRUE(router_->Accept(LeaseOf(6, "probe://peaks-v0")));
  EXPECT_EQ(router_->DropUnstarted().size(), 2U);
}

}  // namespace
}  // namespace loopfleet::worker
