#include "monitoring/host/host_files.h"

#include <gtest/gtest.h>

#include "tests/unit/monitoring/host/fake_host.h"

namespace loopfleet::monitoring {
namespace {

TEST(HostFiles, ReadsWhatIsThereAndNothingElse) {
  FakeHost host;
  host.Proc("loadavg", "0.25 0.50 0.75 1/200 4711");
  host.Sys("devices/system/cpu/smt/active", "1");
  host.Sys("empty", "");
  const HostFiles files = host.files();
  EXPECT_EQ(files.Proc("loadavg"), "0.25 0.50 0.75 1/200 4711");
  EXPECT_EQ(files.ProcNumber("loadavg"), 0.25);
  EXPECT_EQ(files.SysNumber("devices/system/cpu/smt/active"), 1);
  EXPECT_EQ(files.Sys("empty"), "");
  EXPECT_EQ(files.SysNumber("empty"), std::nullopt);
  EXPECT_EQ(files.Sys("nothing"), std::nullopt);
  EXPECT_EQ(files.Sys("devices"), std::nullopt);  // a directory
  EXPECT_EQ(files.SysNames(""), (std::vector<std::string>{"devices", "empty"}));
  EXPECT_TRUE(files.SysNames("nothing").empty());
}

TEST(HostFiles, ListsOfProcessors) {
  EXPECT_EQ(ParseCpuList("0-2,7"), (std::vector<int>{0, 1, 2, 7}));
  EXPECT_EQ(ParseCpuList("3"), (std::vector<int>{3}));
  EXPECT_TRUE(ParseCpuList("").empty());
  EXPECT_EQ(ParseCpuList("1,x"), (std::vector<int>{1}));
  EXPECT_EQ(ParseCpuList("1;2"), (std::vector<int>{1}));
}

}  // namespace
}  // namespace loopfleet::monitoring
