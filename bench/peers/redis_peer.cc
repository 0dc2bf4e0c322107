#include "bench/peers/redis_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "bench/peers/peer_connection.h"
#include "bench/rigs/scratch_dir.h"
#include "bench/rigs/stopwatch.h"
#include "common/base/subprocess.h"

namespace loopfleet::bench {
namespace {

using Arguments = std::vector<std::string>;
using SteadyClock = std::chrono::steady_clock;

std::string TextOf(const Arguments& arguments) {
  std::string text = fmt::format("*{}\r\n", arguments.size());
  for (const auto& argument : arguments) {
    text += fmt::format("${}\r\n{}\r\n", argument.size(), argument);
  }
  return text;
}

// Reads and discards one answer.
Status Skip(PeerConnection& connection) {
  LF_TRY(const std::string head, connection.Line());
  if (head.starts_with("-")) return Fail(ErrorKind::kSystem, "redis: " + head);
  const long count = head.size() > 1 ? std::atol(head.c_str() + 1) : 0;
  if (head.starts_with("$") && count >= 0) {
    return connection.Drop(static_cast<std::size_t>(count) + 2);
  }
  if (head.starts_with("*")) {
    for (long i = 0; i < count; ++i) LF_TRY_VOID(Skip(connection));
  }
  return {};
}

// Sends `count` commands, at most `outstanding` of them unanswered.
Status Pipeline(PeerConnection& connection, const std::string& command, std::uint32_t count,
                std::uint32_t outstanding) {
  std::uint32_t answered = 0;
  for (std::uint32_t sent = 0; sent < count; ++sent) {
    if (sent - answered == outstanding) {
      LF_TRY_VOID(Skip(connection));
      ++answered;
    }
    LF_TRY_VOID(connection.Send(command));
  }
  for (; answered < count; ++answered) LF_TRY_VOID(Skip(connection));
  return {};
}

std::string Push(const char* list, std::uint32_t count, std::uint32_t bytes) {
  Arguments command = {"RPUSH", list};
  command.resize(2 + count, std::string(bytes, 'x'));
  return TextOf(command);
}

// The worker's side: pops jobs as they arrive and pushes one result each.
Status Work(const std::filesystem::path& socket, const RedisLoad& load, std::uint32_t messages) {
  LF_TRY(auto connection, PeerConnection::OpenUnix(socket));
  const std::string pop =
      TextOf({"BLMPOP", "10", "1", "jobs", "LEFT", "COUNT", std::to_string(load.jobs_per_message)});
  const std::string push = Push("results", load.jobs_per_message, load.result_bytes);
  std::uint32_t answered = 0;
  for (std::uint32_t sent = 0; sent < messages; ++sent) {
    LF_TRY_VOID(connection.Send(pop));
    LF_TRY_VOID(connection.Send(push));
    while (sent - answered >= load.outstanding / 2) {
      LF_TRY_VOID(Skip(connection));
      LF_TRY_VOID(Skip(connection));
      ++answered;
    }
  }
  for (; answered < messages; ++answered) {
    LF_TRY_VOID(Skip(connection));
    LF_TRY_VOID(Skip(connection));
  }
  return {};
}

}  // namespace

Result<std::optional<double>> RedisRate(const RedisLoad& load) {
  LF_TRY(const auto scratch, CreateScratchDir());
  const std::filesystem::path socket = scratch.path() / "redis";
  auto server =
      Subprocess::Start({.argv = {"redis-server", "--port", "0", "--unixsocket", socket, "--dir",
                                  scratch.path(), "--appendonly", "yes", "--appendfsync", "always",
                                  "--save", "", "--logfile", scratch.path() / "log"}});
  if (!server && server.error().kind == ErrorKind::kNotFound) return std::nullopt;
  if (!server) return std::unexpected(server.error());
  const std::uint32_t messages = load.jobs / load.jobs_per_message;
  LF_TRY(auto connection, PeerConnection::OpenUnix(socket));
  const auto start = SteadyClock::now();
  Status worked;
  std::thread worker([&] { worked = Work(socket, load, messages); });
  const Status pushed = Pipeline(connection, Push("jobs", load.jobs_per_message, load.job_bytes),
                                 messages, load.outstanding);
  worker.join();
  const double seconds = Since(start);
  LF_TRY_VOID(pushed);
  LF_TRY_VOID(worked);
  server->End(std::chrono::seconds(5));
  return static_cast<double>(messages) * load.jobs_per_message / seconds;
}

}  // namespace loopfleet::bench
