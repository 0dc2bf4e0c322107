#include "monitoring/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "monitoring/metrics.h"

namespace loopfleet::monitoring {
namespace {

using namespace std::chrono_literals;

// A minimal client, which can also send partial and malformed requests.
UniqueFd Connect(const std::string& address) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  const auto colon = address.rfind(':');
  peer.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.sin_addr);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&peer), sizeof peer), 0)
      << address << ": " << std::strerror(errno);
  const timeval bound{.tv_sec = 120, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  return fd;
}

void SendText(const UniqueFd& fd, const std::string& text) {
  EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

std::string ReceiveAll(const UniqueFd& fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = ::recv(fd.get(), buffer, sizeof buffer, 0)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

struct Answer {
  int status = 0;
  std::string head;
  std::string body;
};

Answer Ask(const std::string& address, const std::string& request) {
  const UniqueFd fd = Connect(address);
  SendText(fd, request);
  const std::string text = ReceiveAll(fd);
  Answer answer;
  const auto end = text.find("\r\n\r\n");
  if (end == std::string::npos || !text.starts_with("HTTP/1.1 ")) {
    ADD_FAILURE() << "not an HTTP answer: '" << text << "'";
    return answer;
  }
  answer.status = std::stoi(text.substr(9, 3));
  answer.head = text.substr(0, end);
  answer.body = text.substr(end + 4);
  return answer;
}

Answer Get(const std::string& address, const std::string& path) {
  return Ask(address, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

std::unique_ptr<HttpServer> Serve(const Registry& registry, HealthCheck health = {},
                                  HttpServerOptions options = {}) {
  auto server = HttpServer::Start(options, registry, std::move(health));
  if (!server) {
    ADD_FAILURE() << server.error().message;
    return nullptr;
  }
  return *std::move(server);
}

TEST(HttpServer, TellsTheRealPortAndServesMetrics) {
  Registry registry;
  RegisterBuildInfo(registry, {.component = "worker", .version = "0.1.0"});
  const auto server = Serve(registry);
  EXPECT_TRUE(server->address().starts_with("127.0.0.1:"));
  EXPECT_FALSE(server->address().ends_with(":0"));
  const Answer answer = Get(server->address(), "/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.head.find("text/plain; version=0.0.4"), std::string::npos);
  EXPECT_NE(answer.body.find("loopfleet_build_info{component=\"worker\",version=\"0.1.0\"} 1\n"),
            std::string::npos)
      << answer.body;
}

TEST(HttpServer, HealthFollowsTheCallback) {
  Registry registry;
  std::atomic<bool> stuck = false;
  const auto server = Serve(registry, [&] {
    return stuck ? std::vector<std::string>{"no heartbeat for 12 s", "disk \"full\""}
                 : std::vector<std::string>{};
  });
  Answer answer = Get(server->address(), "/healthz");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(nlohmann::json::parse(answer.body), nlohmann::json({{"status", "ok"}}));
  stuck = true;
  answer = Get(server->address(), "/healthz");
  EXPECT_EQ(answer.status, 503);
  const auto json = nlohmann::json::parse(answer.body);
  EXPECT_EQ(json["status"], "unhealthy");
  EXPECT_EQ(json["reasons"], nlohmann::json({"no heartbeat for 12 s", "disk \"full\""}));
}

TEST(HttpServer, ReadinessAsksHealthToo) {
  Registry registry;
  std::atomic<bool> stuck = false;
  std::atomic<bool> registered = false;
  const auto server =
      Serve(registry,
            [&] { return stuck ? std::vector<std::string>{"stuck"} : std::vector<std::string>{}; },
            {.ready = [&] {
              return registered ? std::vector<std::string>{} : std::vector<std::string>{"alone"};
            }});
  Answer answer = Get(server->address(), "/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(nlohmann::json::parse(answer.body)["reasons"], nlohmann::json({"alone"}));
  EXPECT_EQ(Get(server->address(), "/healthz").status, 200);
  registered = true;
  answer = Get(server->address(), "/readyz");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(nlohmann::json::parse(answer.body), nlohmann::json({{"status", "ready"}}));
  stuck = true;
  EXPECT_EQ(Get(server->address(), "/readyz").status, 503);
}

TEST(HttpServer, LifeIsNotHealth) {
  Registry registry;
  const auto full = [] { return std::vector<std::string>{"the disk is full"}; };
  std::atomic<bool> stuck = false;
  const auto server =
      Serve(registry, full, {.alive = [&] {
              return stuck ? std::vector<std::string>{"stuck"} : std::vector<std::string>{};
            }});
  EXPECT_EQ(Get(server->address(), "/healthz").status, 503);
  Answer answer = Get(server->address(), "/livez");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(nlohmann::json::parse(answer.body), nlohmann::json({{"status", "alive"}}));
  stuck = true;
  answer = Get(server->address(), "/livez");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(nlohmann::json::parse(answer.body)["reasons"], nlohmann::json({"stuck"}));
  // Without an `alive` check, /livez answers as /healthz.
  EXPECT_EQ(Get(Serve(registry, full)->address(), "/livez").status, 503);
}

TEST(HttpServer, SaysItsVersion) {
  Registry registry;
  const auto server = Serve(registry, {}, {.build = {.component = "worker", .version = "0.1.0"}});
  const Answer answer = Get(server->address(), "/version");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(nlohmann::json::parse(answer.body),
            nlohmann::json({{"component", "worker"}, {"version", "0.1.0"}}));
}

TEST(HttpServer, AnExceptionInTheCallbackIsAnAnswer) {
  Registry registry;
  const auto server =
      Serve(registry, []() -> std::vector<std::string> { throw std::runtime_error("oh"); });
  EXPECT_EQ(Get(server->address(), "/healthz").status, 500);
  EXPECT_EQ(Get(server->address(), "/metrics").status, 200);
}

TEST(HttpServer, AnythingElseIsNotFound) {
  Registry registry;
  const auto server = Serve(registry);
  for (const char* path : {"/", "/metrics/", "/metricsx", "/../etc/passwd", "/etc/passwd",
                           "/%2e%2e/%2e%2e/etc/passwd"}) {
    const Answer answer = Get(server->address(), path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.body.find("root:"), std::string::npos) << path;
  }
  EXPECT_EQ(Get(server->address(), "/nothing").status, 404);
  EXPECT_EQ(Get(server->address(), "/healthz?verbose=1").status, 200);
}

TEST(HttpServer, OnlyGetAndHead) {
  Registry registry;
  RegisterBuildInfo(registry, {.component = "worker", .version = "0.1.0"});
  const auto server = Serve(registry);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const Answer answer = Ask(server->address(), std::string(method) +
                                                     " /metrics HTTP/1.1\r\nHost: x\r\n"
                                                     "Content-Length: 0\r\n\r\n");
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_NE(answer.head.find("Allow: GET, HEAD"), std::string::npos) << method;
  }
  const Answer head = Ask(server->address(), "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  const auto length = Get(server->address(), "/metrics").body.size();
  EXPECT_NE(head.head.find("Content-Length: " + std::to_string(length)), std::string::npos)
      << head.head;
}

TEST(HttpServer, AnswersWhateverHostIsNamed) {
  Registry registry;
  const auto server = Serve(registry);
  for (const char* host : {"Host: coordinator.example:1", "Host: [::1]", "X-Nothing: 1"}) {
    EXPECT_EQ(
        Ask(server->address(), "GET /healthz HTTP/1.1\r\n" + std::string(host) + "\r\n\r\n").status,
        200)
        << host;
  }
}

TEST(HttpServer, HalfOpenRequestsDoNotBlockAScrape) {
  Registry registry;
  const auto server = Serve(registry);
  std::vector<UniqueFd> half_open;
  for (int i = 0; i < 100; ++i) {  // more than the server has threads
    half_open.push_back(Connect(server->address()));
    SendText(half_open.back(), i % 2 == 0 ? "GET /metr" : "");
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Get(server->address(), "/metrics").status, 200);
  // This takes two seconds or more. civetweb's own timeout is half a minute; the margin is for slow
  // machines.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 25s);
}

// Holds back every answer until Open is called.
class SlowSite final : public Site {
 public:
  bool Has(std::string_view path) const override { return path == "/"; }
  SiteReply Answer(const SiteRequest&) override {
    std::unique_lock lock(mutex_);
    ++asking_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    return {.body = std::make_shared<const std::string>("{}")};
  }
  void CloseStreams() override { Open(); }

  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool AwaitAsking(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 120s, [&] { return asking_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int asking_ = 0;
  bool open_ = false;
};

TEST(HttpServer, WhoeverLooksAtTheSiteLeavesThreadsForAScrape) {
  Registry registry;
  SlowSite site;
  constexpr int kPlaces = 6;
  const auto server =
      Serve(registry, {}, {.threads = kPlaces + 2, .site_threads = kPlaces, .site = &site});
  const auto ask = [&] {
    UniqueFd fd = Connect(server->address());
    SendText(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return fd;
  };
  std::vector<UniqueFd> looking;
  for (int i = 0; i < kPlaces; ++i) looking.push_back(ask());
  ASSERT_TRUE(site.AwaitAsking(kPlaces));
  // All places are taken, so these requests are refused and hold no thread.
  for (int i = 0; i < 3 * kPlaces; ++i) {
    const std::string refused = ReceiveAll(ask());
    EXPECT_TRUE(refused.starts_with("HTTP/1.1 503 ")) << refused;
    EXPECT_NE(refused.find("Retry-After: "), std::string::npos);
  }
  EXPECT_EQ(Get(server->address(), "/metrics").status, 200);
  EXPECT_EQ(Get(server->address(), "/healthz").status, 200);
  site.Open();
  for (const UniqueFd& fd : looking) {
    EXPECT_TRUE(ReceiveAll(fd).starts_with("HTTP/1.1 200 "));
  }
  // The places are free again.
  EXPECT_TRUE(ReceiveAll(ask()).starts_with("HTTP/1.1 200 "));
}

TEST(HttpServer, StopsAtOnceAfterServing) {
  Registry registry;
  Nanos quickest = 1h;
  // A busy machine may be slow once; civetweb alone takes 2 s each time.
  for (int i = 0; i < 60 && quickest >= 1s; ++i) {
    auto server = Serve(registry);
    EXPECT_EQ(Get(server->address(), "/metrics").status, 200);
    const auto start = std::chrono::steady_clock::now();
    server.reset();
    quickest = std::min<Nanos>(quickest, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(quickest, 1s);
}

TEST(HttpServer, TakesAHostName) {
  Registry registry;
  const auto server = Serve(registry, {}, {.listen = "localhost:0"});
  ASSERT_TRUE(server->address().starts_with("localhost:"));
  EXPECT_EQ(Get("127.0.0.1" + server->address().substr(9), "/healthz").status, 200);
}

TEST(HttpServer, StopsWhileClientsAreConnected) {
  Registry registry;
  auto server = Serve(registry);
  const UniqueFd silent = Connect(server->address());
  const UniqueFd half = Connect(server->address());
  SendText(half, "GET /metrics");
  server.reset();  // returns
}

TEST(HttpServer, AnOccupiedPortIsAnError) {
  Registry registry;
  const auto first = Serve(registry);
  const auto second = HttpServer::Start({.listen = first->address()}, registry, {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind, ErrorKind::kUnavailable);
  for (const std::string& part : {first->address(), std::string("Address already in use")}) {
    EXPECT_NE(second.error().message.find(part), std::string::npos) << second.error().message;
  }
}

TEST(HttpServer, AnAddressOfAnotherMachineIsAnError) {
  Registry registry;
  const auto server = HttpServer::Start({.listen = "192.0.2.1:0"}, registry, {});
  ASSERT_FALSE(server.has_value());
  EXPECT_EQ(server.error().kind, ErrorKind::kUnavailable);
}

TEST(HttpServer, RejectsWhatIsNotHostAndPort) {
  Registry registry;
  for (const char* listen :
       {"", "127.0.0.1", "127.0.0.1:", ":8080", "127.0.0.1:80s", "127.0.0.1:65536", "127.0.0.1:-1",
        "[::1]:0", "a b:0", "::1:0", "127.0.0.1:0,127.0.0.1:0", "127.0.0.1:0x10"}) {
    const auto server = HttpServer::Start({.listen = listen}, registry, {});
    ASSERT_FALSE(server.has_value()) << listen;
    EXPECT_EQ(server.error().kind, ErrorKind::kInvalid) << listen;
  }
}

}  // namespace
}  // namespace loopfleet::monitoring
