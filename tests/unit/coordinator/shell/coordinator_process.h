#pragma once
// A real coordinator process in a private directory, and stub peers that speak the real protocol
// over real sockets from the test's own thread.

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/wire/codec/codec.h"
#include "common/wire/message.h"
#include "common/wire/transport/dealer.h"

namespace loopfleet::coordinator {

// Waits until the condition holds; the test fails if that takes half a minute.
void Await(const char* what, const std::function<bool()>& condition);

class PrivateDir {
 public:
  PrivateDir();
  ~PrivateDir();
  PrivateDir(const PrivateDir&) = delete;
  PrivateDir& operator=(const PrivateDir&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class CoordinatorProcess {
 public:
  // Ready when the constructor returns. `more` are further arguments.
  explicit CoordinatorProcess(const std::filesystem::path& dir,
                              const std::vector<std::string>& more = {});
  ~CoordinatorProcess();  // kill -9, if it still runs
  CoordinatorProcess(const CoordinatorProcess&) = delete;
  CoordinatorProcess& operator=(const CoordinatorProcess&) = delete;

  void Signal(int signal) const;
  int Wait();  // exit status, or -signal

  std::string clients;
  std::string workers;
  std::string http;
  pid_t pid = -1;
};

// Runs the coordinator's program to its end: exit status and what it wrote to stderr.
struct Ended {
  int status = 0;
  std::string errors;
};
Ended RunCoordinator(const std::vector<std::string>& arguments);

std::string HttpGet(const std::string& address, const std::string& path);

class StubClient {
 public:
  StubClient(wire::Context& context, const std::string& endpoint);
  // Asks again every second, greeting first: as real clients do. `meanwhile` turns other peers.
  wire::CoordinatorMessage Call(
      const wire::ClientMessage& message, const std::function<void()>& meanwhile = [] {});
  wire::CoordinatorReply Raw(std::string_view frame);  // the next reply of all

 private:
  Uuid id_ = Uuid::Random();
  wire::Dealer dealer_;
  std::uint64_t last_number_ = 0;
};

// Measures every job at 100 ns, without running anything.
class StubWorker {
 public:
  StubWorker(wire::Context& context, const std::string& endpoint, std::uint32_t credit);
  // Reads what there is; reports at most `reports` of what it holds. Says who it is when asked, and
  // is heard once a second.
  void Step(std::size_t reports);
  std::size_t held() const { return held_.size(); }
  int hellos() const { return hellos_; }
  const std::map<JobId, int>& runs() const { return runs_; }

 private:
  void Greet();
  void Hear(const wire::WorkerCommand& command);
  wire::Report ReportOf(const wire::Lease& lease);
  void Send(const wire::WorkerMessage& message);

  wire::WorkerHello facts_;
  wire::Dealer dealer_;
  std::map<LeaseId, wire::Lease> held_;  // until the report is acknowledged
  std::map<LeaseId, bool> reported_;
  std::map<JobId, int> runs_;
  Instant last_heartbeat_{};
  int hellos_ = 0;
};

}  // namespace loopfleet::coordinator
