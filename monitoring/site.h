#pragma once
// Site: what a daemon shows to people over its HTTP listener, beside /metrics and the health
// checks. The server (http_server.h) speaks HTTP: methods, headers, who is let in; the site knows
// paths and bodies.
//
// Answer() is called on the server's threads, several at a time.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::monitoring {

struct SiteRequest {
  std::string_view path;   // as it was sent: "/api/job/12.3"
  std::string_view query;  // after the '?'; "" if there is none
};

// Pieces of a reply without an end, such as server-sent events. Used by one thread.
class ReplyStream {
 public:
  virtual ~ReplyStream() = default;
  // Waits for the next bytes, some seconds at most; null: it is over.
  virtual std::shared_ptr<const std::string> Next() = 0;
};

enum class Encoding { kIdentity, kGzip };

struct SiteReply {
  int status = 200;
  std::string_view content_type = "application/json";
  std::shared_ptr<const std::string> body;  // one for all who ask; none: `stream`
  Encoding encoding = Encoding::kIdentity;
  int retry_after_s = 0;                // of a 503; 0: not said
  std::unique_ptr<ReplyStream> stream;  // after the head, until it is over or nobody reads
};

class Site {
 public:
  virtual ~Site() = default;
  virtual bool Has(std::string_view path) const = 0;  // is it a path of this site's?
  virtual SiteReply Answer(const SiteRequest& request) = 0;
  // Every stream is over, and no new one begins: the server is about to go.
  virtual void CloseStreams() = 0;
};

// Whose requests a site answers. /metrics and the health checks answer everybody.
enum class Audience {
  kNobody,
  kThisMachine,  // connections from 127.0.0.0/8
  kEverybody,
};

// Whether a browser that was sent to `host` (the request's Host field) may be answered. A web page
// of a stranger can have its own name point at our address and then read what we answer; it cannot
// make an address or a name of ours its own. So: addresses, localhost, and the names in `allowed`.
bool IsOwnHost(std::string_view host, const std::vector<std::string>& allowed);

}  // namespace loopfleet::monitoring
