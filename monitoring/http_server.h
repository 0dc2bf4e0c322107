#pragma once
// HttpServer: a daemon's read-only HTTP interface. GET or HEAD of
//   /metrics  the registry in Prometheus' text format
//   /healthz  200 {"status":"ok"}, or 503 {"status":"unhealthy","reasons":[...]}: see to the daemon
//   /livez    200 {"status":"alive"}, or 503 {"status":"stuck","reasons":[...]}: needs a restart
//   /readyz   200 {"status":"ready"}, or 503 {"status":"not ready","reasons":[...]}: no work now
//   /version  {"component":"worker","version":"0.1.0"}
//   the paths of its site, if it has one (site.h): for its audience, under its own host names only
// Other paths are 404, other methods 405. It runs on its own threads, apart from the daemon's loop,
// so it also answers when the loop is stuck (the health check must then say so). Starting the first
// server makes the process ignore SIGPIPE, as civetweb requires.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "monitoring/metrics.h"
#include "monitoring/registry.h"
#include "monitoring/site.h"

namespace loopfleet::monitoring {

// Reasons why the daemon is not healthy (or not ready), each a short sentence; empty: it is. Called
// on the server's threads, several at a time: it must not block.
using HealthCheck = std::function<std::vector<std::string>()>;

struct HttpServerOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT; IPv4 only; port 0: a free one
  BuildInfo build = {};                // for /version
  HealthCheck alive = {};              // for /livez: what a restart fixes; none: as /healthz
  HealthCheck ready = {};              // for /readyz, in addition to /healthz; none: as /healthz
  // A JSON array that /healthz shows as "attention" unless it is empty, whatever its status; none:
  // never. Called like a HealthCheck.
  std::function<std::string()> attention = {};
  // A connection that sends no complete request holds a thread until the timeout; a client of a
  // busy machine may take a second to send one. With these defaults, only more than 30 half-open
  // connections a second can block a scrape.
  int threads = 64;
  // Threads that the site may occupy; further requests for it get 503 with Retry-After. The others
  // stay free for /metrics and the health checks.
  int site_threads = 32;
  std::chrono::milliseconds request_timeout{2000};
  Site* site = nullptr;  // must outlive the server; none: only the paths above
  Audience audience = Audience::kThisMachine;
  std::vector<std::string> host_names;  // accepted in requests for the site, beside its addresses
};

class HttpServer {
 public:
  // Listening when it returns. `registry` must outlive the server. kInvalid: not HOST:PORT;
  // kUnavailable: the address cannot be listened on (in use, not of this machine, not permitted).
  static Result<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                   const Registry& registry, HealthCheck health);
  ~HttpServer();  // waits for running requests, at most the request timeout
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const std::string& address() const;  // HOST:PORT with the actual port

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::monitoring
