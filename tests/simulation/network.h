#pragma once
// Port: the coordinator's end of one kind of connection, and the network in between. A party speaks
// over a link. The coordinator knows each connection by a routing id, as with a ZeroMQ router: a
// broken connection returns under a new id.

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/contract/event.h"
#include "tests/simulation/agenda.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/fault_mix.h"
#include "tests/simulation/message_bytes.h"

namespace loopfleet::simulation {

using LinkId = std::size_t;

template <class Up, class Down>
class Port {
 public:
  using OnUp = std::function<void(const coordinator::PeerId&, Up)>;
  using OnUnreadable = std::function<void(const coordinator::PeerId&, Unreadable)>;
  using OnDown = std::function<void(Down)>;

  Port(std::string name, Agenda& agenda, const FaultMix& mix, std::uint64_t seed,
       std::uint64_t part)
      : name_(std::move(name)), agenda_(agenda), mix_(mix), dice_(seed, part) {}

  // ---- the coordinator's side
  void Open(OnUp on_up, OnUnreadable on_unreadable) {
    on_up_ = std::move(on_up);
    on_unreadable_ = std::move(on_unreadable);
    for (Link& link : links_) {
      if (link.is_up) Reroute(link);
      for (Up& up : std::exchange(link.unsent, {})) Transmit(link, std::move(up));
    }
  }
  void Close() {
    on_up_ = nullptr;
    for (Link& link : links_) Reroute(link);
    stale_.clear();
  }
  // False: the connection is known to be broken.
  bool Send(const coordinator::PeerId& peer, Down down) {
    const auto route = routes_.find(peer);
    if (route == routes_.end()) {
      const auto stale = stale_.find(peer);
      return stale != stale_.end() && agenda_.now() < stale->second;  // then the message is lost
    }
    Link& link = links_[route->second];
    const bool twice = dice_.Chance(Rate(Fault::kDuplicate));
    for (int copy = 0; copy < (twice ? 2 : 1); ++copy) {
      const auto arrival = Arrival(link, link.last_down, link.down_blocked_until);
      if (!arrival) continue;
      agenda_.At(*arrival, [this, &link, life = link.life, down] {
        if (link.life != life) return;
        Read(down, [&](Down read) { link.on_down(std::move(read)); }, [](const Unreadable&) {});
      });
    }
    MaybeCut(link);
    return true;
  }

  // ---- the parties' side
  LinkId Add(OnDown on_down) {
    links_.reserve(64);  // closures keep references
    links_.push_back({.id = links_.size(), .on_down = std::move(on_down)});
    return links_.back().id;
  }
  // Opens a new socket. Messages in flight on the old one are lost.
  void Connect(LinkId id) {
    Link& link = links_[id];
    link.is_up = true;
    link.unsent.clear();
    Reroute(link);
  }
  void Disconnect(LinkId id) {
    Link& link = links_[id];
    link.is_up = false;
    link.unsent.clear();
    Reroute(link);
  }
  void Send(LinkId id, Up up) {
    Link& link = links_[id];
    if (!on_up_) {  // the party's socket keeps it until the port opens
      if (link.unsent.size() < 100) link.unsent.push_back(std::move(up));
      return;
    }
    Transmit(link, std::move(up));
  }
  // Blocks one or both directions for `duration`. Messages sent meanwhile arrive at its end.
  enum class Deaf { kBoth, kCoordinator, kParty };
  void Part(LinkId id, Nanos duration, Deaf deaf) {
    Link& link = links_[id];
    if (deaf != Deaf::kParty) link.up_blocked_until = agenda_.now() + duration;
    if (deaf != Deaf::kCoordinator) link.down_blocked_until = agenda_.now() + duration;
  }
  void Cut(LinkId id) { Reroute(links_[id]); }
  void Heal() {
    healed_ = true;
    for (Link& link : links_) link.up_blocked_until = link.down_blocked_until = agenda_.now();
  }
  std::size_t size() const { return links_.size(); }

 private:
  struct Link {
    LinkId id = 0;
    OnDown on_down;
    bool is_up = false;
    coordinator::PeerId peer;
    std::uint64_t life = 0;  // changes with the peer
    Instant last_up{};
    Instant last_down{};
    Instant up_blocked_until{};
    Instant down_blocked_until{};
    std::vector<Up> unsent;
  };

  double Rate(Fault fault) const { return healed_ ? 0 : mix_[fault]; }

  void Transmit(Link& link, Up up) {
    const bool twice = dice_.Chance(Rate(Fault::kDuplicate));
    for (int copy = 0; copy < (twice ? 2 : 1); ++copy) {
      const auto arrival = Arrival(link, link.last_up, link.up_blocked_until);
      if (!arrival) continue;
      agenda_.At(*arrival, [this, &link, life = link.life, up] {
        if (link.life != life || !on_up_) return;
        Read(
            up, [&](Up read) { on_up_(link.peer, std::move(read)); },
            [&](const Unreadable& unreadable) { on_unreadable_(link.peer, unreadable); });
      });
    }
    MaybeCut(link);
  }

  template <class Message, class OnRead, class OnGarbled>
  void Read(const Message& sent, const OnRead& on_read, const OnGarbled& on_garbled) {
    if (mix_.bytes == Bytes::kValues) return on_read(sent);
    const Damage damage = dice_.Chance(Rate(Fault::kCorrupt)) ? Damage::kSome : Damage::kNone;
    auto received = PassBytes(sent, damage, dice_);
    if (auto* read = std::get_if<Message>(&received)) return on_read(std::move(*read));
    if (const auto* garbled = std::get_if<Unreadable>(&received)) on_garbled(*garbled);
  }

  // The arrival time of a message sent now; nullopt: lost. In order, except for delayed messages.
  std::optional<Instant> Arrival(const Link& link, Instant& last, Instant blocked_until) {
    if (!link.is_up || dice_.Chance(Rate(Fault::kLose))) return std::nullopt;
    const Nanos delay = mix_.latency + dice_.Between(Nanos{0}, mix_.jitter);
    const Instant arrival = std::max(agenda_.now(), blocked_until) + delay;
    if (dice_.Chance(Rate(Fault::kDelay))) {
      return arrival + dice_.Between(std::chrono::milliseconds(1), std::chrono::seconds(6));
    }
    last = std::max(arrival, last);
    return last;
  }

  void MaybeCut(Link& link) {
    if (dice_.Chance(Rate(Fault::kCut))) Reroute(link);
  }

  void Reroute(Link& link) {
    if (!link.peer.empty()) {
      routes_.erase(link.peer);
      // The coordinator notices at once, or only when a keep-alive probe fails.
      if (dice_.Chance(0.5)) stale_[link.peer] = agenda_.now() + std::chrono::seconds(5);
      link.peer.clear();
    }
    ++link.life;
    if (!link.is_up) return;
    link.peer = fmt::format("{}{}.{}", name_, link.id, link.life);
    routes_[link.peer] = link.id;
  }

  const std::string name_;
  Agenda& agenda_;
  const FaultMix& mix_;
  Dice dice_;
  OnUp on_up_;  // empty: the port is closed
  OnUnreadable on_unreadable_;
  bool healed_ = false;
  std::vector<Link> links_;
  std::map<coordinator::PeerId, LinkId> routes_;
  std::map<coordinator::PeerId, Instant> stale_;  // broken connections and when that is noticed
};

using ClientPort = Port<wire::ClientRequest, wire::CoordinatorReply>;
using WorkerPort = Port<wire::WorkerMessage, wire::WorkerCommand>;

}  // namespace loopfleet::simulation
