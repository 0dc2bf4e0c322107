#pragma once
// HttpServer: what a daemon shows over HTTP, read-only. GET or HEAD of
//   /metrics  the registry in Prometheus' text format
//   /healthz  200 {"status":"ok"}, or 503 {"status":"unhealthy","reasons":[...]}: see to it then
//   /livez    200 {"status":"alive"}, or 503 {"status":"stuck","reasons":[...]}: restart it then
//   /readyz   200 {"status":"ready"}, or 503 {"status":"not ready","reasons":[...]}: no work now
//   /version  {"component":"worker","version":"0.1.0"}
//   the paths of its site, if it has one (site.h): to its audience, under its own names only
// Anything else is 404, any other method 405. It runs on threads of its own and answers without the
// daemon's loop, so it also answers when that is stuck (the health check then has to say so). The
// process ignores SIGPIPE from the start of the first server on, as civetweb wants it.

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

// Why the daemon is not healthy (or not ready), each a short sentence; empty when it is. Called on
// the server's threads, several at a time: it must not block.
using HealthCheck = std::function<std::vector<std::string>()>;

struct HttpServerOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT; IPv4 only; port 0 takes a free one
  BuildInfo build = {};                // for /version
  HealthCheck alive = {};              // for /livez: what a restart mends; none: as healthy
  HealthCheck ready = {};              // for /readyz, beside what /healthz asks; none: as healthy
  // A connection that sends no complete request holds a thread until the timeout. With these two,
  // more than 100 half-open connections a second are needed to keep a scrape from being answered.
  int threads = 64;
  // Of these, as many may be busy with the site; whoever comes then is told to come again. The
  // others are for /metrics and the health checks, whoever looks at the site.
  int site_threads = 32;
  std::chrono::milliseconds request_timeout{500};
  Site* site = nullptr;  // must outlive the server; none: nothing but the paths above
  Audience audience = Audience::kThisMachine;
  std::vector<std::string> host_names;  // that the site may be asked for by, beside its addresses
};

class HttpServer {
 public:
  // Listening when it returns. `registry` must outlive the server. kInvalid: not HOST:PORT;
  // kUnavailable: the address cannot be listened on (in use, not of this machine, not permitted).
  static Result<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                   const Registry& registry, HealthCheck health);
  ~HttpServer();  // waits for requests under way, at most the request timeout
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const std::string& address() const;  // HOST:PORT with the port really taken

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::monitoring
