#include "common/wire/transport/porch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "common/base/log.h"

namespace loopfleet::wire {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookEvery = 10ms;  // while some are kept out
// While strangers come in, more than are welcome for long. What comes between two looks is worked
// through in one go: of 2,000 arrivals a second 2, whose handshakes take about half a millisecond.
constexpr auto kLookWhileOpen = 1ms;
constexpr auto kLogPause = 10s;  // an attacker must not fill the log
// While descriptors are out, libzmq tells of failures as fast as it can until they are dealt with.
constexpr int kMaxEventsPerLook = 10'000;

Instant Now() { return std::chrono::steady_clock::now(); }

Arrivals::Limits LimitsFor(const std::shared_ptr<const KnownAddresses>& known) {
  if (known != nullptr) return {};
  return {.at_once = std::numeric_limits<double>::infinity()};
}

}  // namespace

Porch::Porch(zmq::context_t& context, zmq::socket_t& router, int listener,
             std::shared_ptr<const KnownAddresses> known)
    : router_(router),
      listener_(::fcntl(listener, F_DUPFD_CLOEXEC, 0)),
      known_(std::move(known)),
      arrivals_(LimitsFor(known_), Now()),
      filter_(listener_.get()),
      reserve_(listener_.get()) {
  static std::atomic<std::uint64_t> last_number = 0;
  const std::string name = fmt::format("inproc://loopfleet.porch.{}", ++last_number);
  constexpr int kEvents =
      ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_ACCEPT_FAILED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
  if (::zmq_socket_monitor(router.handle(), name.c_str(), kEvents) != 0) throw zmq::error_t();
  monitor_ = zmq::socket_t(context, zmq::socket_type::pair);
  monitor_.set(zmq::sockopt::linger, 0);
  // libzmq's I/O thread waits for room in this queue. There are no more events than connections.
  monitor_.set(zmq::sockopt::rcvhwm, 0);
  monitor_.connect(name);
  thread_ = std::jthread([this](const std::stop_token& stopping) { Run(stopping); });
}

Porch::~Porch() {
  // First, or an event without a reader would hold up libzmq's I/O thread.
  ::zmq_socket_monitor(router_.handle(), nullptr, 0);
  thread_.request_stop();
  stop_.Signal();
  thread_.join();
}

void Porch::Run(const std::stop_token& stopping) {
  while (!stopping.stop_requested()) {
    WaitForNews();
    CountEvents();
    Decide();
  }
}

// Looking again only after a pause makes many events cost one wakeup.
void Porch::WaitForNews() {
  if (admitted_ == Admit::kEverybody && arrivals_.IsCalm(Now())) {
    zmq_pollitem_t items[] = {{monitor_.handle(), -1, ZMQ_POLLIN, 0},
                              {nullptr, stop_.fd(), ZMQ_POLLIN, 0}};
    ::zmq_poll(items, 2, -1);
  } else {
    pollfd item{.fd = stop_.fd(), .events = POLLIN, .revents = 0};
    const auto pause = admitted_ == Admit::kEverybody ? kLookWhileOpen : kLookEvery;
    ::poll(&item, 1, static_cast<int>(pause.count()));
  }
}

// An event is two parts: its number (16 bits) and value, then the endpoint.
void Porch::CountEvents() {
  const Instant now = Now();
  for (int i = 0; i < kMaxEventsPerLook; ++i) {
    zmq::message_t event;
    zmq::message_t endpoint;
    if (!monitor_.recv(event, zmq::recv_flags::dontwait)) return;
    if (!event.more() || !monitor_.recv(endpoint, zmq::recv_flags::none)) return;
    std::uint16_t number = 0;
    if (event.size() < sizeof number) continue;
    std::memcpy(&number, event.data(), sizeof number);
    if (number == ZMQ_EVENT_ACCEPTED) arrivals_.Arrived(now);
    if (number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) arrivals_.Succeeded(now);
  }
}

void Porch::Decide() {
  const Instant now = Now();
  if (!reserve_.IsTouched()) return Let(arrivals_.WhoAt(now), now);
  Let(Admit::kNobody, now);
  const Status emptied = reserve_.HangUpOnQueue();
  if (now < next_reserve_log_) return;
  next_reserve_log_ = now + kLogPause;
  log::Warning("porch.few_descriptors new connections wait: raise the limit (LimitNOFILE)");
  if (!emptied) log::Error("porch.full_queue error=\"{}\"", emptied.error().message);
}

void Porch::Let(Admit who, Instant now) {
  const bool is_known_changed = who == Admit::kKnown && known_->version() != known_version_;
  if (who == admitted_ && !is_known_changed) return;
  if (admitted_ == Admit::kEverybody) ++held_off_count_;
  const auto known = known_ == nullptr ? KnownAddresses::Snapshot{} : known_->Take();
  if (held_off_count_ > 0 && now >= next_log_) {
    next_log_ = now + kLogPause;
    log::Warning("porch.held_off count={} known_addresses={}", std::exchange(held_off_count_, 0),
                 known.addresses.size());
  }
  if (const Status done = filter_.Let(who, known.addresses); !done) {
    // Tried again at the next look; until then it stays as it is.
    if (now < next_failure_log_) return;
    next_failure_log_ = now + kLogPause;
    return log::Error("porch.no_filter error=\"{}\"", done.error().message);
  }
  admitted_ = who;
  known_version_ = known.version;
}

}  // namespace loopfleet::wire
