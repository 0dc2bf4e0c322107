#pragma once
// A real coordinator process in a private directory, and stub peers that use the real protocol over
// real sockets on the test's thread.

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

// Waits until the condition holds; the test fails after half a minute.
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
  // The coordinator is ready when the constructor returns. `more`: further arguments.
  explicit CoordinatorProcess(const std::filesystem::path& dir,
                              const std::vector<std::string>& more = {});
  ~CoordinatorProcess();  // SIGKILL if it still runs
  CoordinatorProcess(const CoordinatorProcess&) = delete;
  CoordinatorProcess& operator=(const CoordinatorProcess&) = delete;

  void Signal(int signal) const;
  int Wait();  // exit status, or -signal

  std::string clients;
  std::string workers;
  std::string http;
  pid_t pid = -1;
};

// Runs the coordinator's program to its end; returns its exit status and standard error.
struct Ended {
  int status = 0;
  std::string errors;
};
Ended RunCoordinator(const std::vector<std::string>& arguments);

std::string HttpGet(const std::string& address, const std::string& path);

class StubClient {
 public:
  StubClient(wire::Context& context, const std::string& endpoint);
  // Like a real client, sends a hello and repeats the request every second. `meanwhile` runs other
  // peers.
  wire::CoordinatorMessage Call(
      const wire::ClientMessage& message, const std::function<void()>& meanwhile = [] {});
  void Send(const wire::ClientMessage& message);       // once, without waiting for an answer
  wire::CoordinatorReply Raw(std::string_view frame);  // returns the next reply of any kind

 private:
  std::string Hello() const;

  Uuid id_ = Uuid::Random();
  wire::Dealer dealer_;
  std::uint64_t last_number_ = 0;
};

// Measures every job at 100 ns, or fails it, without running anything.
class StubWorker {
 public:
  StubWorker(wire::Context& context, const std::string& endpoint, std::uint32_t credit,
             const std::string& host = "");
  void FailWith(FailureCode code) { fails_with_ = code; }
  // Reads all messages, reports at most `reports` of the held leases, says hello when asked, and
  // sends a heartbeat once a second.
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
  std::optional<FailureCode> fails_with_;
  wire::Dealer dealer_;
  std::map<LeaseId, wire::Lease> held_;  // until the report is acknowledged
  std::map<LeaseId, bool> reported_;
  std::map<JobId, int> runs_;
  Instant last_heartbeat_{};
  int hellos_ = 0;
};

}  // namespace loopfleet::coordinator
