#pragma once
// Role: what a key is for. What each role may do: coordinator/core/rules/permission.h. Which roles
// each socket admits: authenticator.h.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace loopfleet::wire {

enum class Role : std::uint8_t {
  kClient,       // submits jobs, reads outcomes, cancels its own batches
  kWorker,       // takes leases, reports
  kAdmin,        // everything that clients may, for all batches; drains workers
  kCoordinator,  // the peer of all of these
};

inline constexpr std::array kRoles = {Role::kClient, Role::kWorker, Role::kAdmin,
                                      Role::kCoordinator};

constexpr std::string_view NameOf(Role role) {
  switch (role) {
    case Role::kClient: return "client";
    case Role::kWorker: return "worker";
    case Role::kAdmin: return "admin";
    case Role::kCoordinator: return "coordinator";
  }
  return "client";
}

constexpr std::optional<Role> ParseRole(std::string_view name) {
  for (const Role role : kRoles) {
    if (NameOf(role) == name) return role;
  }
  return std::nullopt;
}

// The owner of a key, according to the coordinator's authorized/ directory.
struct Principal {
  Role role = Role::kClient;
  std::string name;
  friend bool operator==(const Principal&, const Principal&) = default;
};

}  // namespace loopfleet::wire
