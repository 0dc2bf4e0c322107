#pragma once
// Site: the pages for people on a daemon's HTTP listener, beside /metrics and the health checks.
// The server (http_server.h) handles methods, headers and access; the site handles paths and
// bodies.
//
// Answer() is called on the server's threads, several at a time.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::monitoring {

struct SiteRequest {
  std::string_view path;   // as sent: "/api/job/12.3"
  std::string_view query;  // after the '?'; "": none
  bool accepts_gzip = false;
};

// Pieces of an endless reply, such as server-sent events. Used by one thread.
class ReplyStream {
 public:
  virtual ~ReplyStream() = default;
  // Waits for the next bytes, some seconds at most; nullptr: the stream has ended.
  virtual std::shared_ptr<const std::string> Next() = 0;
};

enum class Encoding { kIdentity, kGzip };

struct SiteReply {
  int status = 200;
  std::string_view content_type = "application/json";
  std::shared_ptr<const std::string> body;  // shared between requests; none: `stream`
  Encoding encoding = Encoding::kIdentity;
  int retry_after_s = 0;                // for a 503, seconds; 0: not sent
  std::unique_ptr<ReplyStream> stream;  // sent after the head until it ends or the peer is gone
};

class Site {
 public:
  virtual ~Site() = default;
  virtual bool Has(std::string_view path) const = 0;  // whether it is a path of this site
  virtual SiteReply Answer(const SiteRequest& request) = 0;
  // Ends every stream and refuses new ones: the server is about to stop.
  virtual void CloseStreams() = 0;
};

// The peers that a site answers. /metrics and the health checks answer all.
enum class Audience {
  kNobody,
  kThisMachine,  // connections from 127.0.0.0/8
  kEverybody,
};

// Whether to answer a request for `host` (its Host field), against DNS rebinding: a foreign web
// page can point its own name at our address and read the answers, but cannot use an address or a
// name of ours. Accepts addresses, localhost, and the names in `allowed`.
bool IsOwnHost(std::string_view host, const std::vector<std::string>& allowed);

// Whether a request with this Accept-Encoding field takes a body compressed by gzip.
bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace loopfleet::monitoring
