#pragma once
// Key files: ZeroMQ certificates (ZPL text), which pyzmq's zmq.auth.load_certificate reads, too.
//
//   NAME.key          public:  metadata role, name; curve public-key
//   NAME.key_secret   secret:  the same and secret-key; mode 0600 or less, owned by its user
//
// Each load checks mode and owner of the open file; an error names the command that fixes it.
// Loading follows no symbolic link and reads at most 4 KiB.

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

// Accepts letters, digits, '.', '_' and '-', but no leading '.': the name becomes a file name.
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

// Parses the text of a key file. kCorrupt: it is not a key file; the message says why. A file
// without a role, such as one written by pyzmq, gets `fallback`, the role that its place implies.
Result<PublicKeyFile> ParsePublicKeyFile(std::string_view text, Role fallback);
Result<SecretKeyFile> ParseSecretKeyFile(std::string_view text, Role fallback);
std::string FormatPublicKeyFile(const PublicKeyFile& file);
std::string FormatSecretKeyFile(const SecretKeyFile& file);

// The kind of an errno from opening or reading. kSystem: descriptors or memory ran out, which says
// nothing about the file; kNotFound; else kInvalid, which lasts until the file is fixed.
ErrorKind ReadErrorKind(int why);

// Errors: kNotFound, kInvalid (mode, owner, not a plain file, not readable), kCorrupt, kSystem.
Result<PublicKeyFile> LoadPublicKeyFile(const std::filesystem::path& path, Role fallback);
Result<SecretKeyFile> LoadSecretKeyFile(const std::filesystem::path& path, Role fallback);

// Atomic: the file ends up complete and on disk, or unchanged. kExists: secret keys are never
// overwritten, public keys only with kReplace.
enum class IfExists { kFail, kReplace };
Status WritePublicKeyFile(const std::filesystem::path& path, const PublicKeyFile& file,
                          IfExists if_there = IfExists::kFail);
Status WriteSecretKeyFile(const std::filesystem::path& path, const SecretKeyFile& file);

}  // namespace loopfleet::wire
