#include "common/wire/keys/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "common/base/trim.h"
#include "common/base/unique_fd.h"

namespace loopfleet::wire {
namespace {

constexpr std::size_t kMaxFileBytes = 4096;

// A copy of a secret key's text, overwritten on destruction.
struct Wiped {
  std::string text;
  Wiped() = default;
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  ~Wiped() { ::explicit_bzero(text.data(), text.size()); }
};

std::string_view Unquoted(std::string_view value) {
  value = Trimmed(value);
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
      value.back() == value.front()) {
    return value.substr(1, value.size() - 2);
  }
  return value;
}

// The lines "name = value" of a file, in any section, as pyzmq reads them.
struct Fields {
  std::optional<std::string_view> role;
  std::optional<std::string_view> name;
  std::optional<std::string_view> public_key;
  std::optional<std::string_view> secret_key;
};

Result<Fields> ReadFields(std::string_view text) {
  if (text.size() > kMaxFileBytes) {
    return Fail(ErrorKind::kCorrupt, "it is longer than a key file");
  }
  Fields fields;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (line.empty() || line.front() == '#' || equals == std::string_view::npos) continue;
    const std::string_view name = Trimmed(line.substr(0, equals));
    std::optional<std::string_view>* field = name == "role"         ? &fields.role
                                             : name == "name"       ? &fields.name
                                             : name == "public-key" ? &fields.public_key
                                             : name == "secret-key" ? &fields.secret_key
                                                                    : nullptr;
    if (field == nullptr) continue;  // other metadata
    if (field->has_value()) {
      return Fail(ErrorKind::kCorrupt, fmt::format("'{}' stands in it twice", name));
    }
    *field = Unquoted(line.substr(equals + 1));
  }
  return fields;
}

Result<PublicKeyFile> PublicPart(const Fields& fields, Role fallback) {
  PublicKeyFile file{.role = fallback};
  if (fields.role) {
    const auto role = ParseRole(*fields.role);
    if (!role)
      return Fail(ErrorKind::kCorrupt,
                  "its role is none of client, worker, admin, "
                  "coordinator");
    file.role = *role;
  }
  if (fields.name) {
    if (const Status fine = CheckKeyName(*fields.name); !fine) {
      return Fail(ErrorKind::kCorrupt, fine.error().message);
    }
    file.name = *fields.name;
  }
  if (!fields.public_key) return Fail(ErrorKind::kCorrupt, "it has no line 'public-key = \"...\"'");
  auto key = PublicKey::Parse(*fields.public_key);
  if (!key) return Fail(ErrorKind::kCorrupt, "its public-key is not 40 characters of Z85");
  file.key = *key;
  return file;
}

std::unexpected<Error> CannotRead(const std::filesystem::path& path) {
  const int why = errno;
  return Fail(ReadErrorKind(why),
              fmt::format("cannot read {}: {}", path.native(), std::strerror(why)));
}

enum class Secrecy { kPublic, kSecret };

Status CheckMode(const std::filesystem::path& path, const struct stat& info, Secrecy secrecy) {
  if (!S_ISREG(info.st_mode)) {
    return Fail(ErrorKind::kInvalid, fmt::format("{} is not a plain file", path.native()));
  }
  const unsigned mode = info.st_mode & 07777;
  if (secrecy == Secrecy::kSecret) {
    if (info.st_uid != ::geteuid()) {
      return Fail(ErrorKind::kInvalid,
                  fmt::format("{} belongs to user {}, and a secret key has to belong to the user "
                              "that uses it: chown {} {}",
                              path.native(), info.st_uid, ::geteuid(), path.native()));
    }
    if ((mode & 0177) != 0) {
      return Fail(ErrorKind::kInvalid,
                  fmt::format("{} has mode {:04o}, so others may have read this secret key: chmod "
                              "600 {}, or make a new one with `loopfleet keygen`",
                              path.native(), mode, path.native()));
    }
    return {};
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} belongs to user {}, who could put another key there: chown {} {}",
                            path.native(), info.st_uid, ::geteuid(), path.native()));
  }
  if ((mode & 0022) != 0) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} has mode {:04o}, so others could put another key there: chmod 644 "
                            "{}",
                            path.native(), mode, path.native()));
  }
  return {};
}

Status ReadFile(const std::filesystem::path& path, Secrecy secrecy, std::string& text) {
  // O_NONBLOCK, because the path may name a pipe.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    if (errno == ELOOP) {
      return Fail(ErrorKind::kInvalid,
                  fmt::format("{} is a symbolic link; put the file itself there", path.native()));
    }
    return CannotRead(path);
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return CannotRead(path);
  LF_TRY_VOID(CheckMode(path, info, secrecy));
  text.resize(kMaxFileBytes + 1);
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return {};
}

std::unexpected<Error> InFile(const std::filesystem::path& path, const Error& error) {
  return Fail(error.kind, fmt::format("{}: {}", path.native(), error.message));
}

Status CannotWrite(const std::filesystem::path& path) {
  return Fail(ErrorKind::kSystem,
              fmt::format("cannot write {}: {}", path.native(), std::strerror(errno)));
}

// Writes a draft, whose hidden name no loader reads, then links it to `path`, which fails if the
// file exists, or renames it, which replaces the file.
Status WriteFile(const std::filesystem::path& path, std::string_view text, mode_t mode,
                 IfExists if_there) {
  const std::filesystem::path draft =
      path.parent_path() / fmt::format(".{}.{}", path.filename().native(), ::getpid());
  ::unlink(draft.c_str());  // left by a process that was killed
  const UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) return CannotWrite(path);
  const auto name_it = if_there == IfExists::kFail ? ::link : ::rename;
  const bool written =
      ::fchmod(file.get(), mode) == 0 &&  // regardless of the umask
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file.get()) == 0 && name_it(draft.c_str(), path.c_str()) == 0;
  const int why = errno;
  ::unlink(draft.c_str());
  if (written) return {};
  if (why == EEXIST) {
    return Fail(ErrorKind::kExists, fmt::format("{} is there already, and a key is never written "
                                                "over: choose another --name or --out",
                                                path.native()));
  }
  errno = why;
  return CannotWrite(path);
}

constexpr std::string_view kSecretHead =
    "# Secret key of loopfleet (a ZeroMQ CURVE certificate). Keep it secret; mode 0600.\n";
constexpr std::string_view kPublicHead =
    "# Public key of loopfleet (a ZeroMQ CURVE certificate). Safe to share.\n";

std::string Body(Role role, std::string_view name, const PublicKey& key) {
  return fmt::format(
      "\nmetadata\n    role = \"{}\"\n    name = \"{}\"\ncurve\n    public-key = \"{}\"\n",
      NameOf(role), name, key.ToText());
}

}  // namespace

ErrorKind ReadErrorKind(int why) {
  if (why == EMFILE || why == ENFILE || why == ENOMEM) return ErrorKind::kSystem;
  return why == ENOENT ? ErrorKind::kNotFound : ErrorKind::kInvalid;
}

Status CheckKeyName(std::string_view name) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (!name.empty() && name.size() <= kMaxKeyNameBytes && name.front() != '.' &&
      std::ranges::all_of(name, fine)) {
    return {};
  }
  return Fail(ErrorKind::kInvalid,
              fmt::format("a key's name has 1 to {} letters, digits, '.', '_' or '-', and no '.' "
                          "first",
                          kMaxKeyNameBytes));
}

Result<PublicKeyFile> ParsePublicKeyFile(std::string_view text, Role fallback) {
  LF_TRY(const Fields fields, ReadFields(text));
  // A secret key in place of a public one is about to be disclosed.
  if (fields.secret_key) {
    return Fail(ErrorKind::kCorrupt,
                "a secret key stands in it; the file with the public one is meant");
  }
  return PublicPart(fields, fallback);
}

Result<SecretKeyFile> ParseSecretKeyFile(std::string_view text, Role fallback) {
  LF_TRY(const Fields fields, ReadFields(text));
  LF_TRY(const PublicKeyFile open, PublicPart(fields, fallback));
  if (!fields.secret_key) return Fail(ErrorKind::kCorrupt, "it has no line 'secret-key = \"...\"'");
  auto secret = SecretKey::Parse(*fields.secret_key);
  if (!secret) return Fail(ErrorKind::kCorrupt, "its secret-key is not 40 characters of Z85");
  if (secret->PublicHalf() != open.key) {
    return Fail(ErrorKind::kCorrupt, "its public-key does not belong to its secret-key");
  }
  return SecretKeyFile{.role = open.role,
                       .name = open.name,
                       .keys = {.public_key = open.key, .secret_key = *std::move(secret)}};
}

std::string FormatPublicKeyFile(const PublicKeyFile& file) {
  return std::string(kPublicHead) + Body(file.role, file.name, file.key);
}

std::string FormatSecretKeyFile(const SecretKeyFile& file) {
  return fmt::format("{}{}    secret-key = \"{}\"\n", kSecretHead,
                     Body(file.role, file.name, file.keys.public_key),
                     file.keys.secret_key.ToText());
}

Result<PublicKeyFile> LoadPublicKeyFile(const std::filesystem::path& path, Role fallback) {
  std::string text;
  LF_TRY_VOID(ReadFile(path, Secrecy::kPublic, text));
  auto file = ParsePublicKeyFile(text, fallback);
  if (!file) return InFile(path, file.error());
  return file;
}

Result<SecretKeyFile> LoadSecretKeyFile(const std::filesystem::path& path, Role fallback) {
  Wiped wiped;
  LF_TRY_VOID(ReadFile(path, Secrecy::kSecret, wiped.text));
  auto file = ParseSecretKeyFile(wiped.text, fallback);
  if (!file) return InFile(path, file.error());
  return file;
}

Status WritePublicKeyFile(const std::filesystem::path& path, const PublicKeyFile& file,
                          IfExists if_there) {
  return WriteFile(path, FormatPublicKeyFile(file), 0644, if_there);
}

Status WriteSecretKeyFile(const std::filesystem::path& path, const SecretKeyFile& file) {
  Wiped wiped;
  wiped.text = FormatSecretKeyFile(file);
  return WriteFile(path, wiped.text, 0600, IfExists::kFail);
}

}  // namespace loopfleet::wire
