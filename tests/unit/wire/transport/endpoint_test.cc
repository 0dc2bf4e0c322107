// Which endpoints are served without keys (promise I5), and the errors for the others.

#include "common/wire/transport/endpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/wire/keys/private_directory.h"

namespace loopfleet::wire {
namespace {

void ExpectRefused(const std::string& endpoint, std::string_view part) {
  const Status status = CheckConnectEndpoint(endpoint);
  ASSERT_FALSE(status.has_value()) << endpoint;
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
}

TEST(Endpoint, LoopbackIsServed) {
  for (const char* endpoint : {"tcp://127.0.0.1:5570", "tcp://127.0.0.1:0", "tcp://127.1.2.3:1",
                               "tcp://localhost:65535"}) {
    EXPECT_TRUE(CheckConnectEndpoint(endpoint).has_value()) << endpoint;
  }
}

TEST(Endpoint, OtherAddressesNeedKeys) {
  for (const char* endpoint :
       {"tcp://0.0.0.0:5570", "tcp://*:5570", "tcp://192.168.1.2:5570", "tcp://example.org:5570",
        "tcp://[::1]:5570", "tcp://:5570", "tcp://eth0:5570", "tcp://127.0.0.1;10.0.0.1:5570"}) {
    ExpectRefused(endpoint, "without keys only loopback");
    ExpectRefused(endpoint, "add `--keys DIR`");
    const Status listening = CheckListenEndpoint(endpoint);
    ASSERT_FALSE(listening.has_value()) << endpoint;
    EXPECT_NE(listening.error().message.find("`loopfleet keygen --role coordinator --out KEYS`"),
              std::string::npos)
        << listening.error().message;
  }
}

TEST(Endpoint, WithKeysAnyAddressIsServed) {
  for (const char* endpoint : {"tcp://0.0.0.0:5570", "tcp://192.168.1.2:0", "tcp://[::]:5570",
                               "tcp://[::1]:5570", "tcp://127.0.0.1:1"}) {
    EXPECT_TRUE(CheckListenEndpoint(endpoint, Protection::kKeys).has_value()) << endpoint;
    EXPECT_TRUE(CheckConnectEndpoint(endpoint, Protection::kKeys).has_value()) << endpoint;
  }
  EXPECT_TRUE(CheckConnectEndpoint("tcp://cluster-1.example.org:5570", Protection::kKeys));
  // A name may resolve to several addresses, or to another one later: listening on it is refused.
  for (const char* endpoint : {"tcp://cluster.example.org:5570", "tcp://eth0:5570", "tcp://*:5570",
                               "tcp://:5570", "tcp://::1:5570", "tcp://[10.0.0.1]:5570",
                               "tcp://[::1:5570", "tcp://127.0.0.1;10.0.0.1:5570"}) {
    const Status status = CheckListenEndpoint(endpoint, Protection::kKeys);
    ASSERT_FALSE(status.has_value()) << endpoint;
    EXPECT_NE(status.error().message.find("is not an address"), std::string::npos)
        << status.error().message;
  }
  EXPECT_FALSE(CheckConnectEndpoint("tcp://a;b:5570", Protection::kKeys).has_value());
  EXPECT_FALSE(CheckConnectEndpoint("tcp://[::1]", Protection::kKeys).has_value());
  // With keys, the socket may be visible to others.
  EXPECT_TRUE(CheckListenEndpoint("ipc:///tmp/clients", Protection::kKeys).has_value());
}

TEST(Endpoint, Misspelt) {
  ExpectRefused("", "neither tcp:// nor ipc://");
  ExpectRefused("127.0.0.1:5570", "neither tcp:// nor ipc://");
  ExpectRefused("inproc://x", "neither tcp:// nor ipc://");
  ExpectRefused("tcp://127.0.0.1", "no port");
  ExpectRefused("tcp://127.0.0.1:", "not a port");
  ExpectRefused("tcp://127.0.0.1:65536", "not a port");
  ExpectRefused("tcp://127.0.0.1:-1", "not a port");
  ExpectRefused("tcp://127.0.0.1:80x", "not a port");
  ExpectRefused("tcp://127.0.0.1:*", "not a port");
  ExpectRefused("ipc://relative/path", "absolute path");
  ExpectRefused("ipc://@abstract", "absolute path");
  ExpectRefused("ipc://*", "absolute path");
  ExpectRefused("ipc:///tmp/", "absolute path");
}

TEST(Endpoint, IpcNeedsAPrivateDirectory) {
  const PrivateDirectory directory;
  const std::string endpoint = "ipc://" + directory.path() + "/clients";
  EXPECT_TRUE(CheckConnectEndpoint(endpoint).has_value());

  ASSERT_EQ(::chmod(directory.path().c_str(), 0750), 0);
  ExpectRefused(endpoint, "mode 0700 owned by this user");
  ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
  ExpectRefused("ipc:///tmp/clients", "mode 0700 owned by this user");
  ExpectRefused("ipc://" + directory.path() + "/missing/clients", "No such file or directory");
}

TEST(Endpoint, IpcPathsAreShort) {
  const PrivateDirectory directory;
  const std::string prefix = directory.path() + "/";
  const std::string longest = prefix + std::string(107 - prefix.size(), 's');
  EXPECT_TRUE(CheckConnectEndpoint("ipc://" + longest).has_value());
  ExpectRefused("ipc://" + longest + "s", "108 bytes");
}

}  // namespace
}  // namespace loopfleet::wire
