#include "bench/redis_peer.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "client/scratch_dir.h"
#include "client/subprocess.h"
#include "common/base/unique_fd.h"

namespace loopfleet::bench {
namespace {

using Arguments = std::vector<std::string>;
using SteadyClock = std::chrono::steady_clock;

constexpr Nanos kStartLimit = std::chrono::seconds(10);

// A connection that sends commands ahead of their answers.
class Connection {
 public:
  static Result<Connection> Open(const std::filesystem::path& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    const auto end = SteadyClock::now() + kStartLimit;
    while (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      if (SteadyClock::now() > end) return Fail(ErrorKind::kTimeout, "redis-server does not start");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return Connection(std::move(fd));
  }

  Status Send(const Arguments& arguments) {
    std::string text = fmt::format("*{}\r\n", arguments.size());
    for (const auto& argument : arguments) {
      text += fmt::format("${}\r\n{}\r\n", argument.size(), argument);
    }
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t wrote = ::write(fd_.get(), text.data() + done, text.size() - done);
      if (wrote <= 0) return Fail(ErrorKind::kClosed, "redis closed the connection");
      done += static_cast<std::size_t>(wrote);
    }
    return {};
  }

  // Reads one answer and throws it away.
  Status Skip() {
    LF_TRY(const std::string head, Line());
    if (head.starts_with("-")) return Fail(ErrorKind::kSystem, "redis: " + head);
    const long count = head.size() > 1 ? std::atol(head.c_str() + 1) : 0;
    if (head.starts_with("$") && count >= 0) return Drop(static_cast<std::size_t>(count) + 2);
    if (head.starts_with("*")) {
      for (long i = 0; i < count; ++i) LF_TRY_VOID(Skip());
    }
    return {};
  }

 private:
  explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}

  Status Fill() {
    char bytes[65536];
    const ssize_t got = ::read(fd_.get(), bytes, sizeof bytes);
    if (got <= 0) return Fail(ErrorKind::kClosed, "redis closed the connection");
    buffer_.erase(0, std::exchange(position_, 0));
    buffer_.append(bytes, static_cast<std::size_t>(got));
    return {};
  }

  Result<std::string> Line() {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n", position_)) == std::string::npos) LF_TRY_VOID(Fill());
    std::string line = buffer_.substr(position_, end - position_);
    position_ = end + 2;
    return line;
  }

  Status Drop(std::size_t bytes) {
    while (buffer_.size() - position_ < bytes) LF_TRY_VOID(Fill());
    position_ += bytes;
    return {};
  }

  UniqueFd fd_;
  std::string buffer_;
  std::size_t position_ = 0;
};

// Sends `count` commands, at most `outstanding` of them unanswered.
Status Pipeline(Connection& connection, const Arguments& command, std::uint32_t count,
                std::uint32_t outstanding) {
  std::uint32_t answered = 0;
  for (std::uint32_t sent = 0; sent < count; ++sent) {
    if (sent - answered == outstanding) {
      LF_TRY_VOID(connection.Skip());
      ++answered;
    }
    LF_TRY_VOID(connection.Send(command));
  }
  for (; answered < count; ++answered) LF_TRY_VOID(connection.Skip());
  return {};
}

Arguments Push(const char* list, std::uint32_t count, std::uint32_t bytes) {
  Arguments command = {"RPUSH", list};
  command.resize(2 + count, std::string(bytes, 'x'));
  return command;
}

// The worker's side: pops jobs as they come, and pushes as many results.
Status Work(const std::filesystem::path& socket, const RedisLoad& load, std::uint32_t messages) {
  LF_TRY(auto connection, Connection::Open(socket));
  const Arguments pop = {
      "BLMPOP", "10", "1", "jobs", "LEFT", "COUNT", std::to_string(load.jobs_per_message)};
  const Arguments push = Push("results", load.jobs_per_message, load.result_bytes);
  std::uint32_t answered = 0;
  for (std::uint32_t sent = 0; sent < messages; ++sent) {
    LF_TRY_VOID(connection.Send(pop));
    LF_TRY_VOID(connection.Send(push));
    while (sent - answered >= load.outstanding / 2) {
      LF_TRY_VOID(connection.Skip());
      LF_TRY_VOID(connection.Skip());
      ++answered;
    }
  }
  for (; answered < messages; ++answered) {
    LF_TRY_VOID(connection.Skip());
    LF_TRY_VOID(connection.Skip());
  }
  return {};
}

}  // namespace

Result<std::optional<double>> RedisRate(const RedisLoad& load) {
  LF_TRY(const auto scratch, client::ScratchDir::Create());
  const std::filesystem::path socket = scratch.path() / "redis";
  auto server = client::Subprocess::Start(
      {.argv = {"redis-server", "--port", "0", "--unixsocket", socket, "--dir", scratch.path(),
                "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--logfile",
                scratch.path() / "log"}});
  if (!server && server.error().kind == ErrorKind::kNotFound) return std::nullopt;
  if (!server) return std::unexpected(server.error());
  const std::uint32_t messages = load.jobs / load.jobs_per_message;
  LF_TRY(auto connection, Connection::Open(socket));
  const auto start = SteadyClock::now();
  Status worked;
  std::thread worker([&] { worked = Work(socket, load, messages); });
  const Status pushed = Pipeline(connection, Push("jobs", load.jobs_per_message, load.job_bytes),
                                 messages, load.outstanding);
  worker.join();
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  LF_TRY_VOID(pushed);
  LF_TRY_VOID(worked);
  server->End(std::chrono::seconds(5));
  return static_cast<double>(messages) * load.jobs_per_message / seconds;
}

}  // namespace loopfleet::bench
