#include "monitoring/metric_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace loopfleet::monitoring {
namespace {

TEST(MetricTable, NamesAreUniqueAndFollowThePrometheusConventions) {
  std::set<std::string_view> names;
  for (const MetricSpec& spec : MetricTable()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " stands twice";
    EXPECT_TRUE(spec.name.starts_with("loopfleet_")) << spec.name;
    EXPECT_TRUE(std::ranges::all_of(spec.name, [](char c) {
      return (c >= 'a' && c <= 'z') || c == '_';
    })) << spec.name;
    EXPECT_EQ(spec.name.ends_with("_total"), spec.type == MetricType::kCounter) << spec.name;
    EXPECT_TRUE(spec.help.ends_with(".")) << spec.name;
  }
}

TEST(MetricTable, RowsAreFoundByTheirEnum) {
  for (const MetricSpec& spec : MetricTable()) {
    EXPECT_EQ(&SpecOf(spec.metric), &spec);
  }
  EXPECT_EQ(SpecOf(Metric::kWorkerConnected).name, "loopfleet_worker_connected");
  EXPECT_EQ(MetricTable().back().metric, Metric::kBlobsDamaged);
}

TEST(MetricTable, HistogramsHaveRisingBucketsAndNothingElseHasAny) {
  for (const MetricSpec& spec : MetricTable()) {
    EXPECT_EQ(spec.buckets.empty(), spec.type != MetricType::kHistogram) << spec.name;
    EXPECT_TRUE(std::ranges::is_sorted(spec.buckets, std::less_equal<>())) << spec.name;
  }
}

TEST(MetricTable, SumsOverAllTargetsCountNothingTwice) {
  for (const MetricSpec& spec : MetricTable()) {
    const bool worker_name = spec.name.starts_with("loopfleet_worker_");
    EXPECT_EQ(worker_name, spec.home == MetricHome::kWorker) << spec.name;
  }
}

// A label whose values an outsider can choose would make a series for each value.
TEST(MetricTable, NoLabelNamesWhatIsUnbounded) {
  const std::set<std::string_view> bounded = {
      "access",  "activity", "cause",  "child",  "code",  "component", "device",  "grade",  "kind",
      "outcome", "reason",   "result", "source", "stage", "state",     "verdict", "version"};
  for (const MetricSpec& spec : MetricTable()) {
    for (const std::string_view label : spec.labels) {
      EXPECT_TRUE(bounded.contains(label))
          << spec.name << " has the label " << label
          << ": add it here once its values are known to be few and fixed";
    }
  }
}

}  // namespace
}  // namespace loopfleet::monitoring
