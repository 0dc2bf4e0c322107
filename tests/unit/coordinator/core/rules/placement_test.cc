#include "coordinator/core/rules/placement.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

TEST(Placement, ServesItsOwnDeviceAndAny) {
  EXPECT_TRUE(Serves(DeviceKind::kCpu, Placement::kCpu));
  EXPECT_TRUE(Serves(DeviceKind::kCuda, Placement::kCuda));
  EXPECT_TRUE(Serves(DeviceKind::kCuda, Placement::kAny));
  EXPECT_FALSE(Serves(DeviceKind::kCpu, Placement::kCuda));
  EXPECT_FALSE(Serves(DeviceKind::kCuda, Placement::kCpu));
}

TEST(Placement, ADemandNamesEachLabelOnce) {
  const JobSpec spec{.threads = 3, .labels = {"quiet", "big", "quiet"}};
  const Demand demand = DemandOf(spec, Placement::kAny);
  EXPECT_EQ(demand.labels, (std::vector<std::string>{"big", "quiet"}));
  EXPECT_EQ(demand.threads, 3U);
  EXPECT_EQ(demand.placement, Placement::kAny);
}

TEST(Placement, AWorkerHasLabelsByItsHardwareToo) {
  const Labels labels =
      LabelsOf({.hardware = {.isa = "avx512", .host = "n1"}, .labels = {"quiet"}});
  EXPECT_EQ(labels, (Labels{"device=cpu", "host=n1", "isa=avx512", "quiet"}));
  EXPECT_EQ(LabelsOf({.hardware = {.device = DeviceKind::kCuda}}), Labels{"device=cuda"});
}

TEST(Placement, AJobOfAnotherKindNeedsAWorkerThatRunsIt) {
  const JobSpec probe{.source = looptree::BenchmarkUri{"probe://peaks-v0"}};
  const Labels able = LabelsOf({.capabilities = {"kind=probe", "kind=tea", "give-back"}});
  EXPECT_EQ(able, (Labels{"device=cpu", "kind=probe"}));
  const Labels unable = LabelsOf({});
  const Demand demand = DemandOf(probe, Placement::kCpu);
  EXPECT_TRUE(Serves({.labels = &able}, demand));
  EXPECT_FALSE(Serves({.labels = &unable}, demand));
  EXPECT_TRUE(Serves({.labels = &able}, DemandOf({}, Placement::kCpu)));
}

TEST(Placement, AJobThatUsesALaterFieldNeedsAWorkerThatKnowsIt) {
  const Demand plain = DemandOf({}, Placement::kCpu);
  const Demand graded = DemandOf({.min_grade = Grade::kA}, Placement::kCpu);
  const Supply old{.protocol_minor = 0};
  const Supply today{.protocol_minor = wire::kProtocolVersion.minor};
  EXPECT_TRUE(Serves(old, plain) && Serves(today, plain) && Serves(today, graded));
  EXPECT_FALSE(Serves(old, graded));
  EXPECT_FALSE(ShapeServes(old, graded));
  EXPECT_TRUE(MisfitOf(old, graded).older_protocol);
  EXPECT_EQ(MisfitOf(old, graded).count(), 1U);
  EXPECT_NE(ShapeOf(old), ShapeOf(today));
}

TEST(Placement, AMisfitIsAllThatIsMissing) {
  const Labels labels = {"quiet"};
  const Uuid worker{{1}};
  const Supply supply{.worker = worker, .max_threads = 2, .labels = &labels};
  EXPECT_TRUE(Serves(supply, {.threads = 2, .labels = {"quiet"}}));
  EXPECT_TRUE(Serves(supply, {.only = worker, .labels = {}}));
  EXPECT_EQ(MisfitOf(supply, {.threads = 2, .labels = {"quiet"}}).count(), 0U);
  const Demand much{.only = Uuid{{2}},
                    .placement = Placement::kCuda,
                    .threads = 3,
                    .labels = {"big", "quiet", "wet"}};
  const Misfit misfit = MisfitOf(supply, much);
  EXPECT_TRUE(misfit.other_device && misfit.too_few_threads && misfit.other_affinity);
  EXPECT_EQ(misfit.missing_labels, (std::vector<std::string>{"big", "wet"}));
  EXPECT_FALSE(Serves(supply, {.only = Uuid{{2}}, .labels = {}}));
  EXPECT_FALSE(Serves(supply, {.threads = 3, .labels = {}}));
  EXPECT_FALSE(Serves(supply, {.labels = {"big"}}));
  EXPECT_FALSE(Serves({}, {.labels = {"big"}}));
}

}  // namespace
}  // namespace loopfleet::coordinator
