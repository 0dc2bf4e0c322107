#pragma once
// The directories that --keys names.
//
// The coordinator's, made by `loopfleet keygen --role coordinator --out DIR`:
//   coordinator.key_secret, coordinator.key
//   authorized/clients/NAME.key    one public key for each peer; the file's name is the peer's
//   authorized/workers/NAME.key    name, and removing the file revokes the key
//   authorized/admins/NAME.key
// A peer's, made by `loopfleet keygen --role client --out DIR` (worker, admin):
//   NAME.key_secret                exactly one
//   coordinator.key                the coordinator's public key, against impersonation
//
// Files are checked as key_file.h says. Directories must belong to this user or root and must not
// be writable by others.

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/result.h"
#include "common/wire/keys/key.h"
#include "common/wire/keys/key_file.h"
#include "common/wire/keys/role.h"

namespace loopfleet::wire {

inline constexpr std::size_t kMaxAuthorizedKeys = 20'000;  // about 3 MB

std::filesystem::path CoordinatorPublicFile(const std::filesystem::path& dir);
std::filesystem::path CoordinatorSecretFile(const std::filesystem::path& dir);
// `role` can be authorized: it is not kCoordinator.
std::filesystem::path AuthorizedDir(const std::filesystem::path& dir, Role role);

// What a client or worker needs to talk to a coordinator that has keys.
struct PeerKeys {
  Principal self;
  KeyPair own;
  PublicKey coordinator;
};

// `accepted`: the roles that the caller can use. Every error says what to do.
Result<PeerKeys> LoadPeerKeys(const std::filesystem::path& dir, std::span<const Role> accepted);

Result<KeyPair> LoadCoordinatorKeys(const std::filesystem::path& dir);

// The authorized keys and their owners. A value: replaced as a whole when files change.
class AuthorizedKeys {
 public:
  // False if the key was added before: the first owner counts.
  bool Add(const PublicKey& key, Principal principal);
  const Principal* Find(const PublicKey& key) const;
  std::size_t size() const { return keys_.size(); }
  const std::unordered_map<PublicKey, Principal>& all() const { return keys_; }

 private:
  std::unordered_map<PublicKey, Principal> keys_;
};

struct LoadedKeys {
  AuthorizedKeys keys;
  // Files that authorize no key, and why: unreadable, writable by others, in the wrong place, or a
  // key that an earlier file holds (clients/ before workers/ before admins/, then by name). Each is
  // a complete sentence.
  std::vector<std::string> problems;
};

// An error: a directory is missing or not safe, so no key at all is authorized; or (kSystem) one
// cannot be read now, for example because descriptors ran out.
Result<LoadedKeys> LoadAuthorizedKeys(const std::filesystem::path& dir);

}  // namespace loopfleet::wire
