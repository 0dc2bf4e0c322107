#pragma once
// Authenticator: decides which connections the coordinator admits. Answers ZeroMQ's requests (ZAP,
// https://rfc.zeromq.org/spec/27) about the key of a new connection, and finds, for each later
// message, the present owner of its connection's key.
//
// Guarantees: a connection without CURVE, with a key that is not authorized, or with a key whose
// role that door does not admit, gets no message through. A key that Replace() removes counts as
// revoked from the next message on, although its connection stays open. Until Serve() is called, no
// connection is admitted; a handshake waits five seconds.
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

// Whether a door admits keys of this role.
constexpr bool Admits(Door door, Role role) {
  switch (door) {
    case Door::kClients: return role == Role::kClient || role == Role::kAdmin;
    case Door::kWorkers: return role == Role::kWorker;
  }
  return false;
}

class Authenticator {
 public:
  // Call before binding any Router that it guards.
  static Result<Authenticator> Start(Context& context, KeyPair coordinator, AuthorizedKeys keys);
  Authenticator(Authenticator&&) noexcept;
  Authenticator& operator=(Authenticator&&) noexcept;
  ~Authenticator();

  void Serve();  // answers waiting handshakes, a bounded number per call
  // The same for keys read from files that may change. `before_each` is called after a handshake
  // has arrived and before it is judged, and may Replace() the keys. So a key that was authorized
  // before its connection was made is never refused, however late this thread runs.
  void Serve(const std::function<void()>& before_each);
  void Replace(AuthorizedKeys keys);
  const AuthorizedKeys& keys() const;

  // The owner of a connection's user id (assigned by Serve()); nullptr: its key may not use that
  // door, or no longer.
  const Principal* Find(std::string_view user_id, Door door) const;

  struct Refusals {
    std::uint64_t count = 0;  // handshakes refused since the last call
    std::string last;         // the last one: address, fingerprint and reason
  };
  Refusals TakeRefusals();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Authenticator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::wire
