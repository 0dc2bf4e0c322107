#include "common/wire/keys/key_directory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace loopfleet::wire {
namespace {

namespace fs = std::filesystem;

// A key in several directories gets the role that comes first here: the weakest.
constexpr std::array kAuthorizable = {Role::kClient, Role::kWorker, Role::kAdmin};

Status CheckDirectory(const fs::path& dir) {
  struct stat info{};
  if (::stat(dir.c_str(), &info) != 0) {
    const int why = errno;
    return Fail(ReadErrorKind(why), fmt::format("cannot read the keys directory {}: {}",
                                                dir.native(), std::strerror(why)));
  }
  if (!S_ISDIR(info.st_mode)) {
    return Fail(ErrorKind::kInvalid, fmt::format("{} is not a directory of keys", dir.native()));
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} belongs to user {}, who could put keys there: chown {} {}",
                            dir.native(), info.st_uid, ::geteuid(), dir.native()));
  }
  if ((info.st_mode & 0022) != 0) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} has mode {:04o}, so others could put keys there: chmod go-w {}",
                            dir.native(), info.st_mode & 07777, dir.native()));
  }
  return {};
}

// The file names in `dir` that end with `suffix`, sorted. Hidden files are drafts and skipped.
Result<std::vector<std::string>> NamesIn(const fs::path& dir, std::string_view suffix) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(dir, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().native();
    if (name.ends_with(suffix) && !name.starts_with('.')) names.push_back(std::move(name));
  }
  if (error) {
    return Fail(ReadErrorKind(error.value()),
                fmt::format("cannot list {}: {}", dir.native(), error.message()));
  }
  std::ranges::sort(names);
  return names;
}

std::string KeygenHint(const fs::path& dir, Role role) {
  return fmt::format(
      "`loopfleet keygen --role {} --out {} --authorize COORDINATORS_KEYS` makes one", NameOf(role),
      dir.native());
}

std::string RolesIn(std::span<const Role> roles) {
  std::vector<std::string_view> names;
  for (const Role role : roles) names.push_back(NameOf(role));
  return fmt::format("{}", fmt::join(names, " or "));
}

// Adds the key of a file. Returns why the file authorizes no key; "": it does. kSystem: no file can
// be read now, because descriptors or memory ran out.
Result<std::string> AddFrom(const fs::path& path, Role role, AuthorizedKeys& keys) {
  const std::string name = path.stem().native();
  if (const Status fine = CheckKeyName(name); !fine) {
    return fmt::format("{}: {}", path.native(), fine.error().message);
  }
  if (keys.size() >= kMaxAuthorizedKeys) {
    return fmt::format("{}: {} keys are the most that can be authorized", path.native(),
                       kMaxAuthorizedKeys);
  }
  const auto file = LoadPublicKeyFile(path, role);
  if (!file && file.error().kind == ErrorKind::kSystem) return std::unexpected(file.error());
  if (!file) return file.error().message;
  if (file->role != role) {
    return fmt::format("{}: it is the key of a {}, not of a {}", path.native(), NameOf(file->role),
                       NameOf(role));
  }
  if (!keys.Add(file->key, {.role = role, .name = name})) {
    const Principal& first = *keys.Find(file->key);
    return fmt::format("{}: the same key is authorized as {} {} already", path.native(),
                       NameOf(first.role), first.name);
  }
  return std::string();
}

}  // namespace

fs::path CoordinatorPublicFile(const fs::path& dir) { return dir / "coordinator.key"; }
fs::path CoordinatorSecretFile(const fs::path& dir) { return dir / "coordinator.key_secret"; }

fs::path AuthorizedDir(const fs::path& dir, Role role) {
  return dir / "authorized" / (std::string(NameOf(role)) + "s");
}

Result<PeerKeys> LoadPeerKeys(const fs::path& dir, std::span<const Role> accepted) {
  LF_TRY_VOID(CheckCurveSupport());
  LF_TRY_VOID(CheckDirectory(dir));
  LF_TRY(const std::vector<std::string> secrets, NamesIn(dir, kSecretSuffix));
  if (secrets.empty()) {
    return Fail(ErrorKind::kNotFound, fmt::format("no *.key_secret is in {}: {}", dir.native(),
                                                  KeygenHint(dir, accepted.front())));
  }
  if (secrets.size() > 1) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} secret keys are in {} ({}), expected exactly one: "
                            "keep each in a directory of its own",
                            secrets.size(), dir.native(), fmt::join(secrets, ", ")));
  }
  const fs::path path = dir / secrets.front();
  LF_TRY(SecretKeyFile secret, LoadSecretKeyFile(path, accepted.front()));
  if (std::ranges::find(accepted, secret.role) == accepted.end()) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} is the key of a {}, and a {}'s is needed: {}", path.native(),
                            NameOf(secret.role), RolesIn(accepted),
                            KeygenHint("OTHER_DIR", accepted.front())));
  }
  auto coordinator = LoadPublicKeyFile(CoordinatorPublicFile(dir), Role::kCoordinator);
  if (!coordinator && coordinator.error().kind == ErrorKind::kNotFound) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("{}; copy coordinator.key there from the coordinator's keys directory",
                            coordinator.error().message));
  }
  if (!coordinator) return std::unexpected(coordinator.error());
  if (coordinator->role != Role::kCoordinator) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} is the key of a {}, not of a coordinator",
                            CoordinatorPublicFile(dir).native(), NameOf(coordinator->role)));
  }
  return PeerKeys{
      .self = {.role = secret.role,
               .name = secret.name.empty() ? path.stem().native() : std::move(secret.name)},
      .own = std::move(secret.keys),
      .coordinator = coordinator->key};
}

Result<KeyPair> LoadCoordinatorKeys(const fs::path& dir) {
  LF_TRY_VOID(CheckCurveSupport());
  LF_TRY_VOID(CheckDirectory(dir));
  auto secret = LoadSecretKeyFile(CoordinatorSecretFile(dir), Role::kCoordinator);
  if (!secret && secret.error().kind == ErrorKind::kNotFound) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("{}; `loopfleet keygen --role coordinator --out {}` makes it",
                            secret.error().message, dir.native()));
  }
  if (!secret) return std::unexpected(secret.error());
  if (secret->role != Role::kCoordinator) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} is the key of a {}, not of a coordinator",
                            CoordinatorSecretFile(dir).native(), NameOf(secret->role)));
  }
  return std::move(secret->keys);
}

bool AuthorizedKeys::Add(const PublicKey& key, Principal principal) {
  return keys_.try_emplace(key, std::move(principal)).second;
}

const Principal* AuthorizedKeys::Find(const PublicKey& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &found->second;
}

Result<LoadedKeys> LoadAuthorizedKeys(const fs::path& dir) {
  LF_TRY_VOID(CheckDirectory(dir));
  LF_TRY_VOID(CheckDirectory(dir / "authorized"));
  LoadedKeys loaded;
  for (const Role role : kAuthorizable) {
    const fs::path place = AuthorizedDir(dir, role);
    LF_TRY_VOID(CheckDirectory(place));
    LF_TRY(const std::vector<std::string> names, NamesIn(place, kPublicSuffix));
    for (const std::string& name : names) {
      LF_TRY(std::string problem, AddFrom(place / name, role, loaded.keys));
      if (!problem.empty()) loaded.problems.push_back(std::move(problem));
    }
  }
  return loaded;
}

}  // namespace loopfleet::wire
