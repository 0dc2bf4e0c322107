#include <fmt/format.h>

#include <atomic>
#include <chrono>
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

constexpr int kWorkers = 4;
constexpr const char* kStop = "stop";

std::string Put(const std::string& body) {
  return fmt::format("put 0 0 600 {}\r\n{}\r\n", body.size(), body);
}

Status Expect(PeerConnection& connection, std::string_view start) {
  LF_TRY(const std::string line, connection.Line());
  if (line.starts_with(start)) return {};
  return Fail(ErrorKind::kCorrupt, fmt::format("beanstalkd: {}", line));
}

// Takes jobs until the stop job arrives.
Status Work(std::uint16_t port, const PeerLoad& load, std::atomic<std::uint32_t>& finished) {
  LF_TRY(auto connection, PeerConnection::OpenTcp(port));
  LF_TRY_VOID(connection.Send("watch jobs\r\nuse results\r\n"));
  LF_TRY_VOID(Expect(connection, "WATCHING"));
  LF_TRY_VOID(Expect(connection, "USING"));
  const std::string result = Put(std::string(load.result_bytes, 'y'));
  LF_TRY_VOID(connection.Send("reserve\r\n"));
  while (true) {
    LF_TRY(const std::string head, connection.Line());
    std::uint64_t id = 0;
    std::size_t bytes = 0;
    if (std::sscanf(head.c_str(), "RESERVED %lu %zu", &id, &bytes) != 2) {
      return Fail(ErrorKind::kCorrupt, fmt::format("beanstalkd: {}", head));
    }
    LF_TRY(const std::string body, connection.Take(bytes + 2));
    const bool is_last = body.starts_with(kStop);
    LF_TRY_VOID(connection.Send(
        fmt::format("{}delete {}\r\n{}", result, id, is_last ? "" : "reserve\r\n")));
    LF_TRY_VOID(Expect(connection, "INSERTED"));
    LF_TRY_VOID(Expect(connection, "DELETED"));
    if (is_last) return {};
    ++finished;
  }
}

Status Submit(PeerConnection& connection, const PeerLoad& load) {
  LF_TRY_VOID(connection.Send("use jobs\r\n"));
  LF_TRY_VOID(Expect(connection, "USING"));
  const std::string job = Put(std::string(load.job_bytes, 'x'));
  std::uint32_t answered = 0;
  for (std::uint32_t sent = 0; sent < load.jobs; ++sent) {
    if (sent - answered == load.outstanding) {
      LF_TRY_VOID(Expect(connection, "INSERTED"));
      ++answered;
    }
    LF_TRY_VOID(connection.Send(job));
  }
  for (; answered < load.jobs; ++answered) LF_TRY_VOID(Expect(connection, "INSERTED"));
  return {};
}

}  // namespace

PeerJobs BeanstalkdRate(const PeerLoad& load) {
  LF_TRY(const auto scratch, CreateScratchDir());
  LF_TRY(const std::uint16_t port, FreePort());
  auto server = Subprocess::Start({.argv = {"beanstalkd", "-l", "127.0.0.1", "-p",
                                            std::to_string(port), "-b", scratch.path(), "-f0"}});
  if (!server && server.error().kind == ErrorKind::kNotFound) return std::nullopt;
  if (!server) return std::unexpected(server.error());
  LF_TRY(auto connection, PeerConnection::OpenTcp(port));
  std::atomic<std::uint32_t> finished = 0;
  std::vector<Status> worked(kWorkers);
  Status submitted;
  double seconds = 0;
  {
    const auto start = SteadyClock::now();
    std::vector<std::jthread> workers;
    for (int i = 0; i < kWorkers; ++i) {
      workers.emplace_back([&, i] { worked[i] = Work(port, load, finished); });
    }
    submitted = Submit(connection, load);
    while (submitted && finished < load.jobs) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    seconds = Since(start);
    for (int i = 0; i < kWorkers; ++i) {
      if (submitted) submitted = connection.Send(Put(kStop));
    }
  }
  server->End(std::chrono::seconds(5));
  LF_TRY_VOID(submitted);
  for (Status& status : worked) LF_TRY_VOID(status);
  return load.jobs / seconds;
}

}  // namespace loopfleet::bench
