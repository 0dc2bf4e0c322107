#pragma once
// Authenticator: the coordinator's door-keeper. Answers ZeroMQ's question (ZAP,
// https://rfc.zeromq.org/spec/27) whether the key of a connection may come in, and tells, for each
// message that arrives later, whose key its connection has by now.
//
// Guarantees: a connection without CURVE, with a key that is not authorized, or with one of a role
// that has no business at that door, gets no message through. A key that Replace() takes away
// counts as revoked from the next message on, although its connection lives. Until Serve() is
// called nobody comes in; a handshake waits five seconds.
//
// Belongs to the thread that owns the routers. One for each Context.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/keys/key.h"
#include "common/wire/keys/key_directory.h"
#include "common/wire/keys/role.h"
#include "common/wire/transport/context.h"

namespace loopfleet::wire {

// The two sockets of a coordinator. Each is a ZAP domain of its own.
enum class Door : std::uint8_t { kClients, kWorkers };

// Which keys a door is for.
constexpr bool Admits(Door door, Role role) {
  switch (door) {
    case Door::kClients: return role == Role::kClient || role == Role::kAdmin;
    case Door::kWorkers: return role == Role::kWorker;
  }
  return false;
}

class Authenticator {
 public:
  // Before any Router that it guards is bound.
  static Result<Authenticator> Start(Context& context, KeyPair coordinator, AuthorizedKeys keys);
  Authenticator(Authenticator&&) noexcept;
  Authenticator& operator=(Authenticator&&) noexcept;
  ~Authenticator();

  void Serve();  // answers the handshakes that wait, a bounded number
  // The same where keys are read from files that change meanwhile. `before_each` is called when a
  // handshake has arrived and has not been judged, and may Replace() the keys: so a key that was
  // authorized before its connection was made is never refused, however late this thread runs.
  void Serve(const std::function<void()>& before_each);
  void Replace(AuthorizedKeys keys);
  const AuthorizedKeys& keys() const;

  // Who is behind a connection's user id (what Serve() answered), if it may still use that door.
  const Principal* Find(std::string_view user_id, Door door) const;

  struct Refusals {
    std::uint64_t count = 0;  // handshakes refused since the last call
    std::string last;         // about the last one: address, fingerprint, why
  };
  Refusals TakeRefusals();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Authenticator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::wire
