#pragma once
// The files that keys are kept in: ZeroMQ certificates (ZPL text), which pyzmq's
// zmq.auth.load_certificate reads, too.
//
//   NAME.key          public:  metadata role, name; curve public-key
//   NAME.key_secret   secret:  the same and secret-key; mode 0600 or less, owned by its user
//
// Mode and owner are looked at on the open file each time one is loaded; an error names the command
// that mends it. Loading follows no symbolic link and reads at most 4 KiB.

#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/keys/key.h"
#include "common/wire/keys/role.h"

namespace loopfleet::wire {

inline constexpr std::string_view kPublicSuffix = ".key";
inline constexpr std::string_view kSecretSuffix = ".key_secret";
inline constexpr std::size_t kMaxKeyNameBytes = 64;

// Letters, digits, '.', '_', '-'; not a '.' first. Names of files are made from it.
Status CheckKeyName(std::string_view name);

struct PublicKeyFile {
  Role role = Role::kClient;
  std::string name;
  PublicKey key;
};
struct SecretKeyFile {
  Role role = Role::kClient;
  std::string name;
  KeyPair keys;
};

// What the text of a file says. Pure. kCorrupt: it is not such a file; the message says why.
// A file without a role (pyzmq's own) has none of ours: `fallback` is what its place says.
Result<PublicKeyFile> ParsePublicKeyFile(std::string_view text, Role fallback);
Result<SecretKeyFile> ParseSecretKeyFile(std::string_view text, Role fallback);
std::string FormatPublicKeyFile(const PublicKeyFile& file);
std::string FormatSecretKeyFile(const SecretKeyFile& file);

// What an errno of opening or reading says: kSystem, descriptors or memory are short, which says
// nothing of what was to be read; kNotFound; else kInvalid, which it stays until somebody mends it.
ErrorKind KindOfReadError(int why);

// kNotFound, kInvalid (mode, owner, not a plain file, not readable), kCorrupt; kSystem.
Result<PublicKeyFile> LoadPublicKeyFile(const std::filesystem::path& path, Role fallback);
Result<SecretKeyFile> LoadSecretKeyFile(const std::filesystem::path& path, Role fallback);

// The file is whole and on disk, or as it was. kExists: secrets are never written over, public keys
// only if that is meant.
enum class IfThere { kFail, kReplace };
Status WritePublicKeyFile(const std::filesystem::path& path, const PublicKeyFile& file,
                          IfThere if_there = IfThere::kFail);
Status WriteSecretKeyFile(const std::filesystem::path& path, const SecretKeyFile& file);

}  // namespace loopfleet::wire
