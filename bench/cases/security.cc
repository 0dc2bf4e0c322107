// A legitimate client's latency during an attack before authentication, with 50,000 hostile
// connections, beside its latency without them in the same run. The real daemon with keys, over TCP
// on loopback.
//
// The attackers are a separate process that runs only when the processor is otherwise idle
// (SCHED_IDLE; with --nice at the lowest ordinary priority, whose wake-ups delay others): they
// stand for other machines, which would not use the coordinator's processor. They come from the
// client's own address, which is the worst case. The kernel keeps most of them waiting; the output
// says how many were connected. Four kinds in equal parts, interleaved:
//   silent        connects and sends nothing until it is closed
//   garbage       writes 4 KiB of random bytes
//   unfinished    greets as CURVE, sends an undecryptable HELLO or half of one, and waits
//   wrong key     a complete CURVE handshake with an unauthorized key

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "bench/rigs/metrics_page.h"
#include "bench/rigs/result_line.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "client/scratch_dir.h"
#include "common/base/random.h"
#include "common/base/subprocess.h"
#include "common/wire/keys/key_directory.h"
#include "common/wire/keys/key_file.h"

namespace loopfleet::bench {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::Role;

constexpr int kOfEachKind = 12'500;
constexpr int kKinds = 4;
constexpr auto kUndisturbed = seconds(10);  // before and after the attack, each
constexpr auto kAttack = seconds(25);       // 2,000 connections a second
constexpr auto kPause = milliseconds(2);    // between requests of the legitimate client
constexpr std::size_t kMaxHeld = 8'000;     // connections that attackers keep open at once

// ---- the defended

struct Keys {
  fs::path coordinator;
  wire::PeerKeys client;
};

Result<Keys> MakeKeys(const fs::path& dir) {
  const fs::path keys = dir / "keys";
  for (const Role role : {Role::kClient, Role::kWorker, Role::kAdmin}) {
    fs::create_directories(wire::AuthorizedDir(keys, role));
  }
  const auto own = wire::KeyPair::Generate();
  const auto client = wire::KeyPair::Generate();
  LF_TRY_VOID(
      wire::WriteSecretKeyFile(wire::CoordinatorSecretFile(keys),
                               {.role = Role::kCoordinator, .name = "coordinator", .keys = own}));
  LF_TRY_VOID(wire::WritePublicKeyFile(
      wire::AuthorizedDir(keys, Role::kClient) / "legitimate.key",
      {.role = Role::kClient, .name = "legitimate", .key = client.public_key}));
  return Keys{.coordinator = keys,
              .client = {.self = {.role = Role::kClient, .name = "legitimate"},
                         .own = client,
                         .coordinator = own.public_key}};
}

struct Coordinator {
  Subprocess process;
  UniqueFd output;
  std::string clients;
  std::string http;
};

Result<Coordinator> StartCoordinator(const fs::path& dir, const fs::path& keys) {
  LF_TRY(Pipe pipe, OpenPipe());
  Coordinator coordinator;
  const UniqueFd log(::open((dir / "log").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  LF_TRY(coordinator.process,
         Subprocess::Start({.argv = {(client::OwnDirectory() / "loopfleet-coordinator").native(),
                                     "--listen-clients", "tcp://127.0.0.1:0", "--listen-workers",
                                     "tcp://127.0.0.1:0", "--http", "127.0.0.1:0", "--db",
                                     (dir / "bench.db").native(), "--keys", keys.native()},
                            .clear_environment_prefixes = {"LOOPFLEET_"},
                            .stdout_fd = pipe.write.get(),
                            .stderr_fd = log.get()}));
  pipe.write.Reset();
  coordinator.output = std::move(pipe.read);
  std::string line;
  for (char byte = 0; ::read(coordinator.output.get(), &byte, 1) == 1 && byte != '\n';)
    line += byte;
  const auto ready = nlohmann::json::parse(line, nullptr, false);
  if (!ready.is_object()) return Fail(ErrorKind::kUnavailable, "the coordinator is not ready");
  coordinator.clients = ready.at("clients");
  coordinator.http = ready.at("http");
  return coordinator;
}

// ---- the attackers

enum class Priority { kIdle, kNice };

// Counters of the attackers, in memory that both processes share.
struct Told {
  int attempts = 0;
  int connected = 0;  // without those of kind "wrong key"
};

// Does not wait for the connection: the kernel delays most of them.
int ConnectTo(const std::string& endpoint) {
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    ::close(fd);
    return -1;
  }
  return fd;
}

std::string RandomBytes(SplitMix64& random, std::size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
  return bytes;
}

std::string CurveGreeting() {
  std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0CURVE", 17);
  greeting.resize(64, '\0');
  return greeting;
}

class Attackers {
 public:
  Attackers(std::string endpoint, const wire::PublicKey& coordinator)
      : endpoint_(std::move(endpoint)),
        stranger_{.self = {}, .own = wire::KeyPair::Generate(), .coordinator = coordinator} {}

  // Spreads the attempts evenly over kAttack.
  void Run(Told& told) {
    const auto start = SteadyClock::now();
    const int total = kOfEachKind * kKinds;
    for (int i = 0; i < total; ++i) {
      std::this_thread::sleep_until(start + kAttack * i / total);
      if (One(i % kKinds, i)) ++told.attempts;
      told.connected += SayWhereConnected();
      Forget();
    }
    for (int i = 0; i < 400; ++i) {  // the last handshakes
      std::this_thread::sleep_for(milliseconds(10));
      told.connected += SayWhereConnected();
    }
  }

 private:
  bool One(int kind, int number) {
    if (kind == 3) return WrongKey();
    const int fd = ConnectTo(endpoint_);
    if (fd < 0) return false;
    std::string bytes;
    if (kind == 1) bytes = RandomBytes(random_, 4096);
    if (kind == 2) {
      // A HELLO command has 200 bytes: a name of 6, a version, a key, a nonce, a sealed box.
      std::string hello = "\x05HELLO\x01" + std::string(1, '\0');
      hello += RandomBytes(random_, 200 - hello.size());
      bytes = CurveGreeting() + std::string("\x04\xc8", 2) +
              (number % 8 < 4 ? hello : hello.substr(0, 100));
    }
    held_.emplace(fd, std::move(bytes));
    order_.push_back(fd);
    epoll_event event{.events = EPOLLOUT | EPOLLONESHOT, .data = {.fd = fd}};
    ::epoll_ctl(connecting_.get(), EPOLL_CTL_ADD, fd, &event);
    return true;
  }

  // Sends the bytes of new connections; returns their number since the last call.
  int SayWhereConnected() {
    std::array<epoll_event, 64> events;
    const int ready =
        ::epoll_wait(connecting_.get(), events.data(), static_cast<int>(events.size()), 0);
    int connected = 0;
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      const std::string& bytes = held_.at(fd);
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) continue;
      ++connected;
      // The peer may close the connection before the last byte.
      [[maybe_unused]] const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    return connected;
  }

  bool WrongKey() {
    auto dealer = wire::Dealer::Connect(context_, endpoint_, {.keys = &stranger_});
    if (!dealer) return false;
    dealer->Send("forbidden");
    strangers_.push_back(*std::move(dealer));
    return true;
  }

  // Keeps as many connections as allowed, so that the coordinator closes most of them first.
  void Forget() {
    while (order_.size() > kMaxHeld) {
      held_.erase(order_.front());
      ::close(order_.front());
      order_.pop_front();
    }
    while (strangers_.size() > 1500) strangers_.pop_front();  // after three seconds
  }

  const std::string endpoint_;
  wire::Context context_;
  const wire::PeerKeys stranger_;
  SplitMix64 random_{1};
  const UniqueFd connecting_{::epoll_create1(EPOLL_CLOEXEC)};
  std::unordered_map<int, std::string> held_;  // the bytes to send once connected
  std::deque<int> order_;
  std::deque<wire::Dealer> strangers_;
};

// Runs the attackers in a child process. Its exit code says whether all attempts were made.
pid_t StartAttack(const std::string& endpoint, const wire::PublicKey& coordinator, Told& told,
                  Priority priority) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Replaces an inherited scheduling policy.
  const sched_param none{};
  const int policy = priority == Priority::kNice ? SCHED_OTHER : SCHED_IDLE;
  if (::sched_setscheduler(0, policy, &none) != 0) ::_exit(1);
  if (priority == Priority::kNice) ::setpriority(PRIO_PROCESS, 0, 19);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  Attackers(endpoint, coordinator).Run(told);
  ::_exit(told.attempts == kOfEachKind * kKinds ? 0 : 1);
}

// ---- the client's latency

class Latencies {
 public:
  // Sends a request and waits for its answer, while goes_on().
  Status MeasureWhile(client::Client& client, const std::function<bool()>& goes_on) {
    while (goes_on()) {
      const auto start = SteadyClock::now();
      const auto answer = client.ListBatches(1);
      if (!answer) return Fail(answer.error().kind, answer.error().message);
      seconds_.push_back(std::chrono::duration<double>(SteadyClock::now() - start).count());
      std::this_thread::sleep_for(kPause);
    }
    std::ranges::sort(seconds_);
    return {};
  }
  double At(double quantile) const {
    return seconds_[static_cast<std::size_t>(quantile * static_cast<double>(seconds_.size() - 1))] *
           1e6;
  }
  std::size_t count() const { return seconds_.size(); }

 private:
  std::vector<double> seconds_;
};

Result<double> RefusedSoFar(const Coordinator& coordinator) {
  LF_TRY(const auto page, ReadMetrics(coordinator.http));
  for (const auto& [series, value] : page) {
    if (series.find("refus") != std::string::npos &&
        series.find("UNAUTHENTICATED") != std::string::npos) {
      return value;
    }
  }
  return Fail(ErrorKind::kNotFound, "no refusals are on /metrics");
}

Status Run(Priority priority) {
  LF_TRY(client::ScratchDir scratch, client::ScratchDir::Create());
  LF_TRY(const Keys keys, MakeKeys(scratch.path()));
  LF_TRY(Coordinator coordinator, StartCoordinator(scratch.path(), keys.coordinator));
  // Forked before this process has threads; it waits for the signal to begin.
  void* shared =
      ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return Fail(ErrorKind::kSystem, "no memory");
  auto& told = *new (shared) Told;
  LF_TRY(Pipe go, OpenPipe());
  const pid_t gate = ::fork();
  if (gate == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    go.write.Reset();
    char byte = 0;
    if (::read(go.read.get(), &byte, 1) != 1) ::_exit(1);
    const pid_t attack = StartAttack(coordinator.clients, keys.client.coordinator, told, priority);
    int status = 0;
    ::waitpid(attack, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  go.read.Reset();

  auto client = client::Client::Connect(
      {.address = coordinator.clients, .keys = keys.client, .program = "bench"});
  if (!client) return Fail(client.error().kind, client.error().message);
  const auto until = [](SteadyClock::duration time) {
    const auto end = SteadyClock::now() + time;
    return [end] { return SteadyClock::now() < end; };
  };
  Latencies undisturbed;
  LF_TRY_VOID(undisturbed.MeasureWhile(*client, until(kUndisturbed)));
  if (::write(go.write.get(), "g", 1) != 1) return Fail(ErrorKind::kSystem, "no attack");
  int status = 0;
  Latencies attacked;
  LF_TRY_VOID(
      attacked.MeasureWhile(*client, [&] { return ::waitpid(gate, &status, WNOHANG) == 0; }));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Fail(ErrorKind::kSystem, "not all hostile connections were tried");
  }
  Latencies after;
  LF_TRY_VOID(after.MeasureWhile(*client, until(kUndisturbed)));
  LF_TRY(const double refused, RefusedSoFar(coordinator));
  if (refused < 1) return Fail(ErrorKind::kCorrupt, "no wrong key came as far as to be refused");
  const auto batches = client->ListBatches(1);
  if (!batches || !batches->batches.empty()) return Fail(ErrorKind::kCorrupt, "somebody got in");
  for (const double quantile : {0.5, 0.99}) {
    Print({.bench = "security",
           .name = fmt::format("latency of a client during 50,000 hostile connections, p{:.0f}",
                               quantile * 100),
           .value = attacked.At(quantile),
           .unit = "us",
           .peer = "the same client before the attack",
           .peer_value = undisturbed.At(quantile),
           .details = {{"after_the_attack", after.At(quantile)},
                       {"requests", attacked.count()},
                       {"attempts", told.attempts},
                       {"connected_without_whole_handshakes", told.connected},
                       {"attackers", priority == Priority::kNice ? "nice 19" : "SCHED_IDLE"},
                       {"seconds", kAttack.count()},
                       {"wrong_keys_refused", refused}}});
  }
  return {};
}

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  using loopfleet::bench::Priority;
  const bool is_nice = argc > 1 && std::string_view(argv[1]) == "--nice";
  if (argc > (is_nice ? 2 : 1)) {
    fmt::print(stderr, "usage: bench_security [--nice]\n");
    return 2;
  }
  if (const auto status = loopfleet::bench::Run(is_nice ? Priority::kNice : Priority::kIdle);
      !status) {
    fmt::print(stderr, "bench security: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
