#include "monitoring/http_server.h"

#include <arpa/inet.h>
#include <civetweb.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string_view>
#include <utility>

#include "common/base/number_in.h"
#include "common/base/unique_fd.h"

namespace loopfleet::monitoring {
namespace {

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};

bool IsHostCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '-';
}

// Strict, because civetweb also parses lists, and suffixes for TLS and redirects.
Result<HostPort> ParseHostPort(std::string_view text) {
  const auto invalid = [&](std::string_view why) {
    return Fail(
        ErrorKind::kInvalid,
        fmt::format("HTTP address '{}': {}; expected HOST:PORT such as 127.0.0.1:9570", text, why));
  };
  if (text.starts_with('[')) return invalid("IPv6 is not supported here");
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return invalid("no port");
  const std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.empty()) return invalid("no host");
  if (!std::ranges::all_of(host, IsHostCharacter)) return invalid("not a host name");
  const auto port = NumberIn<std::uint16_t>(digits);
  if (!port) return invalid("bad port");
  return HostPort{.host = std::string(host), .port = *port};
}

Result<sockaddr_in> Resolve(const HostPort& wanted) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(wanted.host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return Fail(ErrorKind::kUnavailable, fmt::format("HTTP host '{}' has no IPv4 address: {}",
                                                     wanted.host, ::gai_strerror(error)));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr;
  address.sin_port = htons(wanted.port);
  ::freeaddrinfo(found);
  return address;
}

std::string IpText(const sockaddr_in& address) {
  char text[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return text;
}

// civetweb's accepting thread checks whether to stop only every 2 s or on a new connection.
void StopQuickly(mg_context* context, const sockaddr_in& address) {
  const auto stopped = std::async(std::launch::async, [context] { mg_stop(context); });
  while (stopped.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
    const UniqueFd knock(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)::connect(knock.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
}

// No foreign content, no inline scripts or styles, no framing. No header allows another origin. The
// page may compile WebAssembly: kernels in files that its user opens.
constexpr std::string_view kSiteHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n"
    "Vary: Accept-Encoding\r\n";

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 421: return "Misdirected Request";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return "Internal Server Error";
  }
}

struct Response {
  int status = 200;
  std::string_view reason = "OK";
  std::string_view content_type = "text/plain; charset=utf-8";
  std::string body;
};

enum class Body { kSend, kLeaveOut };

void Send(mg_connection* connection, const Response& response, Body body) {
  const std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n{}Connection: close\r\n\r\n",
      response.status, response.reason, response.content_type, response.body.size(),
      response.status == 405 ? "Allow: GET, HEAD\r\n" : "");
  // Results are ignored: the peer may have disconnected.
  mg_write(connection, head.data(), head.size());
  if (body == Body::kSend) mg_write(connection, response.body.data(), response.body.size());
}

void SendSite(mg_connection* connection, const SiteReply& reply, Body body) {
  const bool streams = reply.stream != nullptr;
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n{}Connection: close\r\n",
      reply.status, ReasonOf(reply.status), reply.content_type, kSiteHeaders);
  if (!streams) head += fmt::format("Content-Length: {}\r\n", reply.body->size());
  if (reply.encoding == Encoding::kGzip) head += "Content-Encoding: gzip\r\n";
  if (reply.retry_after_s > 0) head += fmt::format("Retry-After: {}\r\n", reply.retry_after_s);
  head += "\r\n";
  if (mg_write(connection, head.data(), head.size()) <= 0 || body == Body::kLeaveOut) return;
  if (!streams) {
    mg_write(connection, reply.body->data(), reply.body->size());
    return;
  }
  while (const auto piece = reply.stream->Next()) {
    if (mg_write(connection, piece->data(), piece->size()) < static_cast<int>(piece->size()))
      return;
  }
}

// An error in the form that the site's scripts read.
SiteReply SiteRefusal(int status, std::string_view code, std::string_view message) {
  const nlohmann::json json = {{"error", {{"code", code}, {"message", message}}}};
  return {.status = status, .body = std::make_shared<const std::string>(json.dump() + "\n")};
}

SiteReply SiteBusy() {
  constexpr int kRetryAfterS = 5;
  SiteReply reply = SiteRefusal(503, "BUSY", "too many viewers; try again later");
  reply.retry_after_s = kRetryAfterS;
  return reply;
}

Response JsonResponse(const nlohmann::ordered_json& json) {
  return {.content_type = "application/json",
          .body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

std::vector<std::string> Ask(const HealthCheck& check) {
  return check ? check() : std::vector<std::string>{};
}

Response StatusResponse(std::string_view good, std::string_view bad,
                        const std::vector<std::string>& reasons,
                        const nlohmann::ordered_json& attention = nlohmann::ordered_json::array()) {
  nlohmann::ordered_json json = {{"status", reasons.empty() ? good : bad}};
  if (!reasons.empty()) json["reasons"] = reasons;
  if (!attention.empty()) json["attention"] = attention;
  Response response = JsonResponse(json);
  if (reasons.empty()) return response;
  response.status = 503;
  response.reason = "Service Unavailable";
  return response;
}

// A place among the threads that the site may occupy; false if all are taken.
class SitePlace {
 public:
  SitePlace(std::atomic<int>& taken, int places)
      : taken_(taken), is_one_(taken.fetch_add(1) < places) {}
  ~SitePlace() { --taken_; }
  SitePlace(const SitePlace&) = delete;
  SitePlace& operator=(const SitePlace&) = delete;
  explicit operator bool() const { return is_one_; }

 private:
  std::atomic<int>& taken_;
  const bool is_one_;
};

}  // namespace

struct HttpServer::Impl {
  const Registry* registry;
  HealthCheck health;
  HealthCheck alive;  // none: `health` is asked
  HealthCheck ready;
  std::function<std::string()> attention;
  BuildInfo build;
  Site* site = nullptr;
  int site_threads = 0;
  mutable std::atomic<int> busy_with_site = 0;
  Audience audience = Audience::kThisMachine;
  std::vector<std::string> host_names;
  sockaddr_in ip{};     // where civetweb listens
  std::string address;  // the same, with the host as given
  mg_context* context = nullptr;
  std::mutex mutex;
  std::string first_complaint;  // civetweb's message; guarded by mutex

  ~Impl() {
    if (site != nullptr) site->CloseStreams();  // so that their threads end
    if (context != nullptr) StopQuickly(context, ip);
  }

  Response Answer(std::string_view method, std::string_view path) const {
    if (method != "GET" && method != "HEAD") {
      return {.status = 405, .reason = "Method Not Allowed", .body = "only GET and HEAD\n"};
    }
    if (path == "/metrics") {
      return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
              .body = registry->ToText()};
    }
    if (path == "/healthz") {
      return StatusResponse("ok", "unhealthy", Ask(health),
                            nlohmann::ordered_json::parse(attention ? attention() : "[]"));
    }
    if (path == "/livez") {
      return StatusResponse("alive", "stuck", Ask(alive ? alive : health));
    }
    if (path == "/readyz") {
      std::vector<std::string> reasons = Ask(health);
      for (std::string& reason : Ask(ready)) reasons.push_back(std::move(reason));
      return StatusResponse("ready", "not ready", reasons);
    }
    if (path == "/version") {
      return JsonResponse({{"component", build.component}, {"version", build.version}});
    }
    return {.status = 404,
            .reason = "Not Found",
            .body = "there are /metrics, /healthz, /livez, /readyz and /version\n"};
  }

  bool IsOfSite(std::string_view path) const {
    return site != nullptr && audience != Audience::kNobody && site->Has(path);
  }

  SiteReply AskSite(mg_connection* connection, const mg_request_info& request,
                    std::string_view path) const {
    const std::string_view peer = request.remote_addr;
    if (audience == Audience::kThisMachine && !peer.starts_with("127.")) {
      return SiteRefusal(403, "FORBIDDEN",
                         "the page is shown on the coordinator's machine only: look at it through "
                         "`ssh -L`, or start the coordinator with --page everybody");
    }
    const char* host = mg_get_header(connection, "Host");
    if (host == nullptr || !IsOwnHost(host, host_names)) {
      return SiteRefusal(421, "FORBIDDEN",
                         "the page does not go by this name: ask by address or as localhost, or "
                         "start the coordinator with --page-host NAME");
    }
    const std::string_view query = request.query_string == nullptr ? "" : request.query_string;
    const char* accepted = mg_get_header(connection, "Accept-Encoding");
    return site->Answer({.path = path,
                         .query = query,
                         .accepts_gzip = accepted != nullptr && AcceptsGzip(accepted)});
  }

  // Called by civetweb for every request, before its own processing. No exception may pass through
  // its C frames.
  static int OnRequest(mg_connection* connection) {
    const mg_request_info* request = mg_get_request_info(connection);
    const auto* impl = static_cast<const Impl*>(request->user_data);
    const std::string_view method = request->request_method;
    // The raw path: no path here needs dots or double slashes removed.
    const std::string_view path = request->local_uri_raw == nullptr ? "" : request->local_uri_raw;
    const Body body = method == "HEAD" ? Body::kLeaveOut : Body::kSend;
    Response response;
    try {
      if ((method == "GET" || method == "HEAD") && impl->IsOfSite(path)) {
        const SitePlace place(impl->busy_with_site, impl->site_threads);
        const SiteReply reply = place ? impl->AskSite(connection, *request, path) : SiteBusy();
        SendSite(connection, reply, body);
        return reply.status;
      }
      response = impl->Answer(method, path);
    } catch (const std::exception& error) {
      response = {.status = 500, .reason = "Internal Server Error", .body = error.what()};
    }
    Send(connection, response, body);
    return response.status;
  }

  static int OnComplaint(const mg_connection* connection, const char* message) {
    auto* impl = static_cast<Impl*>(mg_get_user_data(mg_get_context(connection)));
    if (impl != nullptr) {
      std::lock_guard lock(impl->mutex);
      // The first one has the reason; those after it only say that starting failed.
      if (impl->first_complaint.empty()) impl->first_complaint = message;
    }
    return 1;  // do not print it: Start returns it as an error; later ones concern a single peer
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

const std::string& HttpServer::address() const { return impl_->address; }

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                      const Registry& registry,
                                                      HealthCheck health) {
  LF_TRY(const HostPort wanted, ParseHostPort(options.listen));
  auto impl = std::make_unique<Impl>();
  LF_TRY(impl->ip, Resolve(wanted));
  impl->registry = &registry;
  impl->health = std::move(health);
  impl->alive = options.alive;
  impl->ready = options.ready;
  impl->attention = options.attention;
  impl->build = options.build;
  impl->site = options.site;
  impl->site_threads = options.site_threads;
  impl->audience = options.audience;
  impl->host_names = options.host_names;

  const std::string listen = fmt::format("{}:{}", IpText(impl->ip), wanted.port);
  const std::string threads = std::to_string(std::max(1, options.threads));
  const std::string timeout = std::to_string(options.request_timeout.count());
  // No document root, so no file is ever served; no CORS; one request per connection.
  const char* settings[] = {"listening_ports",
                            listen.c_str(),
                            "num_threads",
                            threads.c_str(),
                            "request_timeout_ms",
                            timeout.c_str(),
                            "linger_timeout_ms",
                            "0",
                            "enable_keep_alive",
                            "no",
                            "enable_auth_domain_check",
                            "no",
                            "access_control_allow_origin",
                            "",
                            "access_control_allow_methods",
                            "",
                            nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = &Impl::OnRequest;
  callbacks.log_message = &Impl::OnComplaint;
  impl->context = mg_start(&callbacks, impl.get(), settings);
  if (impl->context == nullptr) {
    std::lock_guard lock(impl->mutex);
    return Fail(ErrorKind::kUnavailable,
                fmt::format("cannot serve HTTP on {}: {}", options.listen,
                            impl->first_complaint.empty() ? "civetweb did not start"
                                                          : impl->first_complaint));
  }
  mg_server_port port{};
  if (mg_get_server_ports(impl->context, 1, &port) != 1) {
    return Fail(ErrorKind::kSystem, fmt::format("cannot tell the port of {}", options.listen));
  }
  impl->ip.sin_port = htons(static_cast<std::uint16_t>(port.port));
  impl->address = fmt::format("{}:{}", wanted.host, port.port);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

}  // namespace loopfleet::monitoring
