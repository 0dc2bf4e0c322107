#include "coordinator/shell/identity.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <string>
#include <string_view>

#include "common/wire/hardware_label.h"

namespace loopfleet::coordinator {
namespace {

using Standing = wire::Sender::Standing;

// Not a cryptographic hash: only the operator chooses names (at most 64 characters), so no attacker
// can search for a collision.
Uuid Digest(std::string_view text) {
  XXH128_canonical_t canonical;  // the same on every machine, because databases store it
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(text.data(), text.size()));
  Uuid id;
  static_assert(sizeof canonical.digest == sizeof id.bytes);
  std::memcpy(id.bytes.data(), canonical.digest, sizeof id.bytes);
  return id;
}

}  // namespace

Uuid ClientIdOf(const wire::Principal& principal) {
  return Digest(fmt::format("{}/{}", wire::NameOf(principal.role), principal.name));
}

ClientNames NamesOf(const wire::AuthorizedKeys& keys) {
  ClientNames names;
  for (const auto& [key, principal] : keys.all()) {
    if (principal.role != wire::Role::kWorker) names[ClientIdOf(principal)] = principal.name;
  }
  return names;
}

Uuid WorkerIdOf(const wire::Principal& principal, const Uuid& said) {
  return Digest(
      fmt::format("{}/{}/{}", wire::NameOf(principal.role), principal.name, said.ToString()));
}

bool IsRevoked(const wire::Sender& sender) { return sender.standing == Standing::kRevoked; }

Failure KeyWasRevoked() {
  return {.code = FailureCode::kUnauthenticated,
          .message = "the key of this connection is no longer authorized"};
}

wire::Role RoleOf(const wire::Sender& sender) {
  return sender.standing == Standing::kWithoutKey ? wire::Role::kAdmin : sender.principal.role;
}

void Identify(const wire::Sender& sender, wire::ClientHello& hello) {
  if (sender.standing == Standing::kAuthorized) hello.client = ClientIdOf(sender.principal);
}

void Identify(const wire::Sender& sender, wire::WorkerHello& hello) {
  if (sender.standing != Standing::kAuthorized) return;
  hello.worker = WorkerIdOf(sender.principal, hello.worker);
  hello.name = fmt::format("{}/{}", sender.principal.name, hello.name);
  hello.labels.push_back(fmt::format("{}{}", wire::kKeyLabel, sender.principal.name));
}

void Identify(const wire::Sender& sender, wire::SetDrain& set) {
  if (sender.standing == Standing::kAuthorized) set.by = sender.principal.name;
}

}  // namespace loopfleet::coordinator
