#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "bench/peers/peer_connection.h"
#include "bench/peers/queue_peers.h"
#include "bench/rigs/scratch_dir.h"
#include "bench/rigs/stopwatch.h"
#include "common/base/subprocess.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

class NatsServer {
 public:
  static Result<std::optional<NatsServer>> Start() {
    LF_TRY(auto scratch, CreateScratchDir());
    LF_TRY(const std::uint16_t port, FreePort());
    // Debian installs it in /usr/sbin, which may not be in PATH.
    for (const char* program : {"nats-server", "/usr/sbin/nats-server"}) {
      auto server =
          Subprocess::Start({.argv = {program, "-a", "127.0.0.1", "-p", std::to_string(port), "-js",
                                      "-sd", scratch.path(), "-l", scratch.path() / "log"}});
      if (server) return NatsServer(std::move(scratch), *std::move(server), port);
      if (server.error().kind != ErrorKind::kNotFound) return std::unexpected(server.error());
    }
    return std::nullopt;
  }
  ~NatsServer() {
    if (server_.pid() > 0) server_.End(std::chrono::seconds(5));
  }
  NatsServer(NatsServer&&) noexcept = default;
  NatsServer& operator=(NatsServer&&) = delete;
  std::uint16_t port() const { return port_; }

 private:
  NatsServer(client::ScratchDir scratch, Subprocess server, std::uint16_t port)
      : scratch_(std::move(scratch)), server_(std::move(server)), port_(port) {}
  client::ScratchDir scratch_;
  Subprocess server_;
  std::uint16_t port_;
};

struct NatsMessage {
  std::string subject;
  std::string reply;
  std::string body;
};

class NatsClient {
 public:
  static Result<NatsClient> Open(std::uint16_t port) {
    LF_TRY(auto connection, PeerConnection::OpenTcp(port));
    LF_TRY(const std::string info, connection.Line());
    NatsClient client(std::move(connection));
    LF_TRY_VOID(client.Send("CONNECT {\"verbose\":false,\"pedantic\":false}\r\n"));
    return client;
  }
  Status Send(const std::string& text) { return connection_.Send(text); }
  // Returns once the server has processed everything sent.
  Status Flush() {
    LF_TRY_VOID(Send("PING\r\n"));
    while (true) {
      LF_TRY(const std::string line, connection_.Line());
      if (line == "PONG") return {};
      if (line != "PING") return Fail(ErrorKind::kCorrupt, "nats: " + line);
    }
  }
  // The next message; answers pings on the way.
  Result<NatsMessage> Next() {
    while (true) {
      LF_TRY(const std::string line, connection_.Line());
      if (line == "PING") {
        LF_TRY_VOID(Send("PONG\r\n"));
      }
      if (line == "PING" || line == "PONG" || line == "+OK" || line.starts_with("INFO")) continue;
      // MSG subject sid [reply] bytes; HMSG has the header's bytes before them.
      if (!line.starts_with("MSG ") && !line.starts_with("HMSG ")) {
        return Fail(ErrorKind::kCorrupt, "nats: " + line);
      }
      std::vector<std::string> words;
      for (std::size_t at = 0; at < line.size();) {
        const std::size_t end = std::min(line.find(' ', at), line.size());
        if (end > at) words.push_back(line.substr(at, end - at));
        at = end + 1;
      }
      const std::size_t sizes = line[0] == 'H' ? 2 : 1;
      if (words.size() < 3 + sizes) return Fail(ErrorKind::kCorrupt, "nats: " + line);
      NatsMessage message{.subject = words[1], .reply = "", .body = ""};
      if (words.size() > 3 + sizes) message.reply = words[3];
      LF_TRY(message.body, connection_.Take(std::stoul(words.back()) + 2));
      return message;
    }
  }
  Result<std::string> Ask(const std::string& subject, const std::string& body) {
    LF_TRY_VOID(Send(fmt::format("SUB ask {0}\r\nUNSUB {0} 1\r\nPUB {1} ask {2}\r\n{3}\r\n",
                                 90 + asked_++, subject, body.size(), body)));
    LF_TRY(NatsMessage answer, Next());
    if (answer.body.find("\"error\"") == std::string::npos) return std::move(answer.body);
    return Fail(ErrorKind::kCorrupt, "nats: " + answer.body);
  }

 private:
  explicit NatsClient(PeerConnection connection) : connection_(std::move(connection)) {}
  PeerConnection connection_;
  int asked_ = 0;
};

std::string Publish(const std::string& subject, const std::string& reply, std::uint32_t bytes) {
  return fmt::format("PUB {} {} {}\r\n{}\r\n", subject, reply, bytes, std::string(bytes, 'x'));
}

Status Submit(NatsClient& client, const PeerLoad& load, const std::string& reply) {
  const std::string job = Publish("jobs", reply, load.job_bytes);
  std::uint32_t answered = 0;
  for (std::uint32_t sent = 0; sent < load.jobs; ++sent) {
    for (; sent - answered >= load.outstanding; ++answered) LF_TRY_VOID(client.Next());
    LF_TRY_VOID(client.Send(job));
  }
  for (; answered < load.jobs; ++answered) LF_TRY_VOID(client.Next());
  return {};
}

// ---- publish and subscribe -------------------------------------------------------------------

Status WorkInMemory(NatsClient& client, const PeerLoad& load) {
  const std::string result = Publish("results", "", load.result_bytes);
  for (std::uint32_t i = 0; i < load.jobs; ++i) {
    LF_TRY_VOID(client.Next());
    LF_TRY_VOID(client.Send(result));
  }
  return {};
}

// ---- JetStream --------------------------------------------------------------------------------

constexpr const char* kConsumer =
    R"({"stream_name":"jobs","config":{"durable_name":"w","ack_policy":"explicit","max_ack_pending":100000}})";
constexpr int kPulled = 256;  // jobs per request

std::string Stream(const char* name) {
  return fmt::format(R"({{"name":"{0}","subjects":["{0}"],"storage":"file"}})", name);
}

std::string Pull() {
  const std::string ask = fmt::format(R"({{"batch":{}}})", kPulled);
  return fmt::format("PUB $JS.API.CONSUMER.MSG.NEXT.jobs.w mine {}\r\n{}\r\n", ask.size(), ask);
}

// Acknowledges a job once its result is acknowledged.
Status WorkFromStream(NatsClient& client, const PeerLoad& load) {
  LF_TRY_VOID(client.Send("SUB mine 1\r\nSUB stored.* 2\r\n" + Pull()));
  const std::string body(load.result_bytes, 'y');
  std::vector<std::string> unacknowledged(load.jobs);
  std::uint32_t taken = 0;
  for (std::uint32_t stored = 0; stored < load.jobs;) {
    LF_TRY(const NatsMessage message, client.Next());
    if (message.subject.starts_with("stored.")) {
      const auto job = std::stoul(message.subject.substr(7));
      LF_TRY_VOID(client.Send(fmt::format("PUB {} 4\r\n+ACK\r\n", unacknowledged[job])));
      ++stored;
    } else if (!message.reply.empty()) {
      unacknowledged[taken] = message.reply;
      LF_TRY_VOID(
          client.Send(fmt::format("PUB results stored.{} {}\r\n{}\r\n", taken, body.size(), body)));
      if (++taken % kPulled == 0) LF_TRY_VOID(client.Send(Pull()));
    }
  }
  return client.Flush();
}

}  // namespace

PeerJobs NatsRate(const PeerLoad& load) {
  LF_TRY(const auto server, NatsServer::Start());
  if (!server) return std::nullopt;
  LF_TRY(auto worker, NatsClient::Open(server->port()));
  LF_TRY(auto submitter, NatsClient::Open(server->port()));
  LF_TRY_VOID(worker.Send("SUB jobs 1\r\n"));
  LF_TRY_VOID(submitter.Send("SUB results 1\r\n"));
  LF_TRY_VOID(worker.Flush());
  LF_TRY_VOID(submitter.Flush());
  Status worked;
  Status submitted;
  const auto start = SteadyClock::now();
  {
    const std::jthread thread([&] { worked = WorkInMemory(worker, load); });
    submitted = Submit(submitter, load, "");
  }
  const double seconds = Since(start);
  LF_TRY_VOID(worked);
  LF_TRY_VOID(submitted);
  return load.jobs / seconds;
}

PeerJobs JetStreamRate(const PeerLoad& load) {
  LF_TRY(const auto server, NatsServer::Start());
  if (!server) return std::nullopt;
  LF_TRY(auto worker, NatsClient::Open(server->port()));
  LF_TRY(auto submitter, NatsClient::Open(server->port()));
  LF_TRY_VOID(submitter.Ask("$JS.API.STREAM.CREATE.jobs", Stream("jobs")));
  LF_TRY_VOID(submitter.Ask("$JS.API.STREAM.CREATE.results", Stream("results")));
  LF_TRY_VOID(submitter.Ask("$JS.API.CONSUMER.DURABLE.CREATE.jobs.w", kConsumer));
  LF_TRY_VOID(submitter.Send("SUB accepted 1\r\n"));
  Status worked;
  Status submitted;
  const auto start = SteadyClock::now();
  {
    const std::jthread thread([&] { worked = WorkFromStream(worker, load); });
    submitted = Submit(submitter, load, "accepted");
  }
  const double seconds = Since(start);
  LF_TRY_VOID(worked);
  LF_TRY_VOID(submitted);
  return load.jobs / seconds;
}

}  // namespace loopfleet::bench
