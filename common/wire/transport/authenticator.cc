#include "common/wire/transport/authenticator.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "common/base/check.h"
#include "common/wire/transport/authenticator_impl.h"
#include "common/wire/transport/context_impl.h"
#include "common/wire/transport/message_parts.h"

namespace loopfleet::wire {
namespace {

constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr int kMaxAnswersPerCall = 256;
constexpr std::string_view kVersion = "1.0";

// The parts of a ZAP 1.0 request for CURVE.
enum Part : std::size_t {
  kVersionPart,
  kIdPart,
  kDomainPart,
  kAddressPart,
  kIdentityPart,
  kMechanismPart,
  kKeyPart,
  kPartCount
};

std::string_view TextOf(const zmq::message_t& part) { return {part.data<char>(), part.size()}; }

std::optional<Door> DoorOf(std::string_view domain) {
  for (const Door door : {Door::kClients, Door::kWorkers}) {
    if (ZapDomainOf(door) == domain) return door;
  }
  return std::nullopt;
}

std::optional<PublicKey> KeyOf(const zmq::message_t& part) {
  PublicKey key;
  if (part.size() != key.bytes.size()) return std::nullopt;
  std::memcpy(key.bytes.data(), part.data(), key.bytes.size());
  return key;
}

// Why a connection is refused; "": it is admitted, and `user_id` is set.
std::string Judge(const AuthorizedKeys& keys, const std::vector<zmq::message_t>& parts,
                  std::string& user_id) {
  if (parts.size() != kPartCount || TextOf(parts[kVersionPart]) != kVersion ||
      TextOf(parts[kMechanismPart]) != "CURVE") {
    return "it does not use CURVE";
  }
  const auto door = DoorOf(TextOf(parts[kDomainPart]));
  const auto key = KeyOf(parts[kKeyPart]);
  if (!door || !key) return "it asks for no door of this coordinator";
  const Principal* principal = keys.Find(*key);
  if (principal == nullptr) return fmt::format("key {}… is not authorized", key->Fingerprint());
  if (!Admits(*door, principal->role)) {
    return fmt::format("key {}… of {} {} is not for this socket", key->Fingerprint(),
                       NameOf(principal->role), principal->name);
  }
  user_id = key->ToText();
  return "";
}

void Answer(zmq::socket_t& socket, std::string_view request_id, std::string_view status,
            std::string_view status_text, std::string_view user_id) {
  const std::array<std::string_view, 6> parts = {kVersion,    request_id, status,
                                                 status_text, user_id,    ""};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto flags = i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    SendPart(socket, parts[i], flags);
  }
}

}  // namespace

std::string_view ZapDomainOf(Door door) {
  return door == Door::kClients ? "loopfleet.clients" : "loopfleet.workers";
}

void Authenticator::Impl::Guard(zmq::socket_t& router, Door door) const {
  router.set(zmq::sockopt::curve_server, true);
  const auto& secret = coordinator.secret_key.bytes();
  router.set(zmq::sockopt::curve_secretkey, zmq::const_buffer(secret.data(), secret.size()));
  router.set(zmq::sockopt::zap_domain, std::string(ZapDomainOf(door)));
  // Without this option, libzmq admits every key when no handler is present. The option is stable
  // in 4.3, though its name is still behind the header's draft switch.
  constexpr int kZapEnforceDomain = 93;
  const int enforce = 1;
  LF_CHECK(::zmq_setsockopt(router.handle(), kZapEnforceDomain, &enforce, sizeof enforce) == 0,
           "libzmq does not enforce domains: {}", ::zmq_strerror(::zmq_errno()));
}

Authenticator::Authenticator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Authenticator::Authenticator(Authenticator&&) noexcept = default;
Authenticator& Authenticator::operator=(Authenticator&&) noexcept = default;
Authenticator::~Authenticator() = default;

Result<Authenticator> Authenticator::Start(Context& context, KeyPair coordinator,
                                           AuthorizedKeys keys) {
  LF_TRY_VOID(CheckCurveSupport());
  try {
    auto impl = std::make_unique<Impl>();
    impl->coordinator = std::move(coordinator);
    impl->keys = std::move(keys);
    impl->socket = zmq::socket_t(context.impl().context, zmq::socket_type::rep);
    impl->socket.set(zmq::sockopt::linger, 0);
    Uninterrupted([&] { impl->socket.bind(kZapEndpoint); });
    return Authenticator(std::move(impl));
  } catch (const zmq::error_t& error) {
    return Fail(ErrorKind::kSystem, fmt::format("cannot authenticate: {}", error.what()));
  }
}

void Authenticator::Serve() {
  Serve([] {});
}

void Authenticator::Serve(const std::function<void()>& before_each) {
  Impl& self = *impl_;
  for (int i = 0; i < kMaxAnswersPerCall; ++i) {
    std::size_t count = 0;
    if (!ReceiveParts(self.socket, self.parts, kPartCount, count)) return;
    before_each();
    const std::string_view id = count > kIdPart ? TextOf(self.parts[kIdPart]) : "";
    std::string user_id;
    const std::string why = Judge(self.keys, self.parts, user_id);
    if (why.empty()) {
      Answer(self.socket, id, "200", "OK", user_id);
      continue;
    }
    ++self.refusals.count;
    self.refusals.last = fmt::format(
        "{}: {}", count > kAddressPart ? TextOf(self.parts[kAddressPart]) : "somebody", why);
    Answer(self.socket, id, "400", "not authorized", "");
  }
}

void Authenticator::Replace(AuthorizedKeys keys) { impl_->keys = std::move(keys); }
const AuthorizedKeys& Authenticator::keys() const { return impl_->keys; }

const Principal* Authenticator::Find(std::string_view user_id, Door door) const {
  const auto key = PublicKey::Parse(user_id);
  if (!key) return nullptr;
  const Principal* principal = impl_->keys.Find(*key);
  return principal != nullptr && Admits(door, principal->role) ? principal : nullptr;
}

Authenticator::Refusals Authenticator::TakeRefusals() { return std::exchange(impl_->refusals, {}); }

}  // namespace loopfleet::wire
