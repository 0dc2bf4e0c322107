#include "monitoring/site.h"

#include <gtest/gtest.h>

namespace loopfleet::monitoring {
namespace {

TEST(IsOwnHost, TakesAddressesAndLocalhost) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:9570", "10.1.2.3:80", "localhost",
                           "LOCALHOST:9570", "[::1]", "[::1]:9570", "[fe80::1]:1"}) {
    EXPECT_TRUE(IsOwnHost(host, {})) << host;
  }
}

TEST(IsOwnHost, TakesTheNamesThatWereGiven) {
  EXPECT_TRUE(IsOwnHost("bench-7", {"other", "bench-7"}));
  EXPECT_TRUE(IsOwnHost("Bench-7:9570", {"bench-7"}));
  EXPECT_FALSE(IsOwnHost("bench-7.example", {"bench-7"}));
  EXPECT_FALSE(IsOwnHost("bench", {"bench-7"}));
}

TEST(IsOwnHost, RefusesWhatAStrangerCouldHavePointedHere) {
  for (const char* host : {"", ":", ":80", "evil.example", "localhost.evil.example",
                           "127.0.0.1.nip", "127.0.0.1:", "127.0.0.1:8o", "[::1", "[evil]", "[]",
                           "::1", "127.1", "0x7f000001", "localhost:80:80", " localhost"}) {
    EXPECT_FALSE(IsOwnHost(host, {"bench-7"})) << host;
  }
}

TEST(AcceptsGzip, WhereTheFieldNamesItOrAll) {
  for (const char* field : {"gzip", "GZIP", "gzip, deflate, br", "br;q=1.0, gzip;q=0.8", "*",
                            "identity, *;q=0.5", "gzip;q=0.001", "deflate , gzip ; q=1"}) {
    EXPECT_TRUE(AcceptsGzip(field)) << field;
  }
}

TEST(AcceptsGzip, NotWhereTheFieldLeavesItOutOrRefusesIt) {
  for (const char* field : {"", "identity", "deflate, br", "gzip;q=0", "gzip; q=0.000", "*;q=0",
                            "*, gzip;q=0", "gzipped", ",", ";", "gzip;q="}) {
    EXPECT_FALSE(AcceptsGzip(field)) << field;
  }
}

}  // namespace
}  // namespace loopfleet::monitoring
