#include "common/wire/transport/connection_limiter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "common/base/log.h"
#include "common/wire/transport/message_parts.h"

namespace loopfleet::wire {
namespace {

using namespace std::chrono_literals;

constexpr auto kPollWhileClosed = 10ms;
// Connections that arrive between two polls are handled in one go: at 2,000 arrivals a second they
// are 2, whose handshakes take about half a millisecond.
constexpr auto kPollWhileOpen = 1ms;
constexpr auto kLogPause = 10s;  // a flood must not fill the log
// Without descriptors libzmq reports failed accepts as fast as it can.
constexpr int kMaxEventsPerPoll = 10'000;

Instant Now() { return std::chrono::steady_clock::now(); }

ConnectionTokens::Limits LimitsFor(ConnectionLimiter::Rate rate) {
  if (rate == ConnectionLimiter::Rate::kLimited) return {};
  return {.at_once = std::numeric_limits<double>::infinity()};
}

// A filter sees a packet from its TCP header on. Only SYNs are dropped, not every packet: the
// listening socket also receives the ACK that completes a handshake, and a connection inherits the
// filter that its listening socket had at that moment.
int DropSyns(int listener) {
  constexpr std::uint32_t kTcpFlags = 13;
  constexpr std::uint32_t kSyn = 0x02;
  constexpr std::uint32_t kSynOrAck = 0x12;
  constexpr std::uint32_t kPass = 0xffffffff;
  std::array<sock_filter, 5> instructions = {{
      {.code = BPF_LD | BPF_B | BPF_ABS, .jt = 0, .jf = 0, .k = kTcpFlags},
      {.code = BPF_ALU | BPF_AND | BPF_K, .jt = 0, .jf = 0, .k = kSynOrAck},
      {.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 0, .jf = 1, .k = kSyn},
      {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0},
      {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = kPass},
  }};
  const sock_fprog program{.len = instructions.size(), .filter = instructions.data()};
  return ::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

int PassAll(int listener) {
  const int unused = 0;
  return ::setsockopt(listener, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
}

}  // namespace

ConnectionLimiter::ConnectionLimiter(zmq::context_t& context, zmq::socket_t& router, int listener,
                                     Rate rate)
    : router_(router),
      listener_(::fcntl(listener, F_DUPFD_CLOEXEC, 0)),
      tokens_(LimitsFor(rate), Now()),
      reserve_(listener_.get()) {
  static std::atomic<std::uint64_t> last_number = 0;
  const std::string name = fmt::format("inproc://loopfleet.connection_limiter.{}", ++last_number);
  constexpr int kEvents =
      ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_ACCEPT_FAILED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
  Monitor(router, name, kEvents);
  monitor_ = zmq::socket_t(context, zmq::socket_type::pair);
  monitor_.set(zmq::sockopt::linger, 0);
  // A full queue would block libzmq's I/O thread. There are no more events than connections.
  monitor_.set(zmq::sockopt::rcvhwm, 0);
  Uninterrupted([&] { monitor_.connect(name); });
  thread_ = std::jthread([this](const std::stop_token& stopping) { Run(stopping); });
}

ConnectionLimiter::~ConnectionLimiter() {
  // First: an event without a reader would block libzmq's I/O thread.
  ::zmq_socket_monitor(router_.handle(), nullptr, 0);
  thread_.request_stop();
  stop_.Signal();
  thread_.join();
}

void ConnectionLimiter::Run(const std::stop_token& stopping) {
  while (!stopping.stop_requested()) {
    WaitForEvents();
    CountEvents();
    Decide();
  }
}

// Polling after a pause, not at each event, makes many events cost one wakeup.
void ConnectionLimiter::WaitForEvents() {
  if (is_open_ && tokens_.IsFull(Now())) {
    zmq_pollitem_t items[] = {{monitor_.handle(), -1, ZMQ_POLLIN, 0},
                              {nullptr, stop_.fd(), ZMQ_POLLIN, 0}};
    ::zmq_poll(items, 2, -1);
  } else {
    pollfd item{.fd = stop_.fd(), .events = POLLIN, .revents = 0};
    const auto pause = is_open_ ? kPollWhileOpen : kPollWhileClosed;
    ::poll(&item, 1, static_cast<int>(pause.count()));
  }
}

// An event is two parts: its number (16 bits) and value, then the endpoint.
void ConnectionLimiter::CountEvents() {
  const Instant now = Now();
  for (int i = 0; i < kMaxEventsPerPoll; ++i) {
    zmq::message_t event;
    zmq::message_t endpoint;
    if (!ReceivePart(monitor_, event)) return;
    if (!event.more() || !ReceivePart(monitor_, endpoint)) return;
    std::uint16_t number = 0;
    if (event.size() < sizeof number) continue;
    std::memcpy(&number, event.data(), sizeof number);
    if (number == ZMQ_EVENT_ACCEPTED) tokens_.Accepted(now);
    if (number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) tokens_.Authorized(now);
  }
}

void ConnectionLimiter::Decide() {
  const Instant now = Now();
  if (!reserve_.IsTouched()) return SetOpen(tokens_.IsAvailable(now), now);
  SetOpen(false, now);
  const Status emptied = reserve_.HangUpOnQueue();
  if (now < next_reserve_log_) return;
  next_reserve_log_ = now + kLogPause;
  log::Warning(
      "connections.few_descriptors new connections wait: raise the limit (LimitNOFILE, "
      "and a coordinator's --memory)");
  if (!emptied) log::Error("connections.full_queue error=\"{}\"", emptied.error().message);
}

void ConnectionLimiter::SetOpen(bool is_open, Instant now) {
  if (is_open == is_open_) return;
  if (is_open_) ++closed_count_;
  if (closed_count_ > 0 && now >= next_log_) {
    next_log_ = now + kLogPause;
    log::Warning("connections.delayed count={}", std::exchange(closed_count_, 0));
  }
  if ((is_open ? PassAll(listener_.get()) : DropSyns(listener_.get())) != 0) {
    // Tried again at the next poll; until then the socket stays as it is.
    if (now < next_failure_log_) return;
    next_failure_log_ = now + kLogPause;
    return log::Error("connections.no_filter error=\"{}\"", std::strerror(errno));
  }
  is_open_ = is_open;
}

}  // namespace loopfleet::wire
