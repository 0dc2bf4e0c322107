// The page, `status`, `top`, /healthz and the metrics say the same of one fleet.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/text/top_screen.h"
#include "common/fleet/attention.h"
#include "common/fleet/fleet_json.h"
#include "common/wire/codec/codec.h"
#include "coordinator/page/fleet_view.h"
#include "coordinator/shell/health.h"
#include "coordinator/shell/observer.h"
#include "monitoring/http_server.h"
#include "tests/unit/coordinator/core/core_harness.h"
#include "tests/unit/coordinator/shell/coordinator_process.h"

namespace loopfleet::coordinator {
namespace {

using std::chrono::seconds;

// "severity kind count: sentence" of each item.
using Items = std::vector<std::string>;

Items ItemsOf(const Json& attention) {
  Items items;
  for (const Json& item : attention) {
    items.push_back(fmt::format("{} {} {}: {}", item["severity"].get<std::string>(),
                                item["kind"].get<std::string>(), item["count"].get<int>(),
                                item["sentence"].get<std::string>()));
  }
  return items;
}

class OneFleet : public testing::Test {
 protected:
  OneFleet() {
    world_.Pass(seconds(30));  // the time to reattach is over
    world_.ClientHello("c", 1);
  }

  // Everyone but the silent reports for a while; one drifts.
  void Pass(seconds time, const std::vector<PeerId>& alive, const PeerId& drifting) {
    for (seconds passed{0}; passed < time; passed += seconds(1)) {
      for (const PeerId& peer : alive) world_.Heartbeat(peer);
      if (!drifting.empty()) {
        world_.Say(drifting, wire::Heartbeat{.canary_ratio = 1.07,
                                             .canary = wire::CanaryState::kDrifting,
                                             .steady_since_ms = 20'000,
                                             .drifting = Canary::kMemory});
      }
      world_.Pass(seconds(1));
    }
    world_.Write();
  }

  // The five see the fleet as it is now.
  void Look() { board_.Show(observer_.Look(*world_.core, world_.now)); }

  Json Page() {
    const auto snapshot = board_.newest();
    return OverviewJson({.snapshot = *snapshot,
                         .history = history_,
                         .batches = {},
                         .digest = digest_,
                         .health = health_.Now(),
                         .version = "1"})["health"];
  }

  // The reply to the command, as it arrives.
  client::FleetReplies Reply() {
    world_.shown_fleets.clear();
    world_.Ask("c", wire::ShowFleet{});
    const std::string frame = wire::Encode(
        wire::CoordinatorReply{.message = status_.Complete(world_.shown_fleets.at(0).fleet, {})});
    auto reply = wire::DecodeCoordinatorReply(frame).value();
    return {.fleet = std::get<wire::FleetInfo>(std::move(reply.message))};
  }

  std::vector<std::string> Top() {
    client::ReplyHistory history;
    history.Add(Reply());
    return client::TopScreen(history, {.columns = 1'000, .rows = 100});
  }

  std::string Get(const std::string& path) {
    const auto server =
        monitoring::HttpServer::Start(
            {.attention = [&] { return Dump(AttentionJson(health_.Now().attention)); }}, registry_,
            [&] { return health_.Reasons(); })
            .value();
    return HttpGet(server->address(), path);
  }

  Json Healthz() {
    const std::string answer = Get("/healthz");
    return Json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
  }

  // kind -> count, of those above 0.
  std::map<std::string, int> Metrics() {
    ShowFleet(board_.newest()->fleet, health_.Now(), metrics_);
    const std::string text = Get("/metrics");
    std::map<std::string, int> counts;
    for (const AttentionInfo& info : AttentionTable()) {
      const std::string series =
          fmt::format("\nloopfleet_needs_attention{{kind=\"{}\"}} ", info.name);
      const auto at = text.find(series);
      EXPECT_NE(at, std::string::npos) << series;
      const int count = std::stoi(text.substr(at + series.size()));
      if (count > 0) counts.emplace(info.name, count);
    }
    return counts;
  }

  Harness world_;
  const SystemClock clock_;
  monitoring::Registry registry_;
  monitoring::CoordinatorMetrics metrics_{registry_, AllLabels()};
  FleetStatus status_{clock_, {.version = "1"}};
  Observer observer_{metrics_, status_, clock_};
  SnapshotBoard board_;
  const Health health_{clock_, board_};
  const FleetHistory history_;
  const OutcomeDigest digest_;
};

TEST_F(OneFleet, IsTheSameForAllWhoShowIt) {
  world_.WorkerHello("lost", 1);
  world_.WorkerHello("drifting", 2);
  world_.WorkerHello("drained", 3);
  world_.WorkerHello("outdated", 4, {.version = {.major = 1, .minor = 0}});
  world_.Ask("c", wire::SetDrain{.target = "worker 3", .reason = "new fan", .by = "ada"});
  Pass(seconds(10), {"drained", "outdated"}, "drifting");
  const auto request =
      world_.Submit("c", {{.tree = 1, .labels = {"huge"}}, {.tree = 2, .labels = {"huge"}}});
  world_.Write();
  world_.MustAccept("c", request);
  status_.SetStorageTrouble(ErrorKind::kFull);
  Look();

  const Items items = ItemsOf(Page()["attention"]);
  ASSERT_EQ(items.size(), 6U) << fmt::format("{}", fmt::join(items, "\n"));
  EXPECT_EQ(items[0], "problem storage_full 1: The database has no room: no jobs are accepted.");
  EXPECT_TRUE(items[1].starts_with("warning jobs_unserved 2: 2 jobs wait: no worker for it ("))
      << items[1];
  EXPECT_EQ(items[2],
            "warning workers_quarantined 1: 1 worker is in quarantine: worker 2 (its canaries of "
            "memory take 1.0700 of their time at start).");
  EXPECT_EQ(items[3], "warning workers_lost 1: 1 worker is lost: worker 1.");
  EXPECT_EQ(items[4],
            fmt::format("warning workers_outdated 1: 1 worker is outdated: worker 4 (it speaks "
                        "protocol 1.0, the coordinator 1.{}).",
                        wire::kProtocolVersion.minor));
  EXPECT_TRUE(items[5].starts_with(
      "notice workers_drained 1: 1 worker is drained: worker 3 (by ada since "))
      << items[5];
  EXPECT_TRUE(items[5].ends_with(" UTC: new fan).")) << items[5];

  const Json status = client::StatusJson(Reply());
  EXPECT_EQ(ItemsOf(status["health"]["attention"]), items);
  EXPECT_EQ(ItemsOf(Healthz()["attention"]), items);
  EXPECT_EQ(Metrics(), (std::map<std::string, int>{{"storage_full", 1},
                                                   {"jobs_unserved", 2},
                                                   {"workers_quarantined", 1},
                                                   {"workers_lost", 1},
                                                   {"workers_outdated", 1},
                                                   {"workers_drained", 1}}));
  const std::vector<std::string> top = Top();
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_TRUE(top.at(i).starts_with(items[i].substr(items[i].find(": ") + 2))) << top.at(i);
  }

  const std::string sentence = "The database has no room: no jobs are accepted.";
  EXPECT_EQ(Page()["sentence"], sentence);
  EXPECT_EQ(status["health"]["sentence"], sentence);
  EXPECT_TRUE(client::StatusText(Reply()).starts_with(sentence));
  EXPECT_EQ(Healthz()["status"], "unhealthy");
  EXPECT_EQ(Healthz()["reasons"], Json::array({sentence}));
  EXPECT_EQ(Page()["state"], "bad");
  EXPECT_EQ(status["health"]["level"], "problem");
}

TEST_F(OneFleet, NothingNeedsAnybody) {
  world_.WorkerHello("w", 1);
  Look();
  const std::string sentence = "1 of 1 worker ready, 0 batches running; nothing needs you.";
  EXPECT_EQ(Page()["sentence"], sentence);
  EXPECT_EQ(Page()["state"], "ok");
  EXPECT_EQ(client::StatusJson(Reply())["health"]["sentence"], sentence);
  EXPECT_EQ(Top().at(0), sentence);
  EXPECT_EQ(Healthz(), Json({{"status", "ok"}}));
  EXPECT_TRUE(Metrics().empty());
}

// A lost worker is no reason to take the coordinator for unhealthy.
TEST_F(OneFleet, OnlyTheCoordinatorsOwnTroubleFailsItsHealthCheck) {
  world_.WorkerHello("lost", 1);
  world_.WorkerHello("w", 2);
  Pass(seconds(10), {"w"}, "");
  Look();
  EXPECT_EQ(Page()["state"], "warning");
  EXPECT_EQ(Healthz()["status"], "ok");
  EXPECT_EQ(ItemsOf(Healthz()["attention"]),
            Items{"warning workers_lost 1: 1 worker is lost: worker 1."});
}

}  // namespace
}  // namespace loopfleet::coordinator
