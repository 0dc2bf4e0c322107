// `loopfleet keygen`: creates key files for a coordinator and its peers. No network.

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"
#include "client/outcome_json.h"
#include "common/base/host_name.h"
#include "common/wire/keys/key_directory.h"
#include "common/wire/keys/key_file.h"

namespace loopfleet::client {
namespace {

namespace fs = std::filesystem;
using wire::Role;

constexpr std::array kAuthorizable = {Role::kClient, Role::kWorker, Role::kAdmin};

struct KeygenFlags {
  std::string role = "client";
  std::string name;
  std::string out;
  std::string authorize;
  bool replace = false;
  bool json = false;
};

struct Made {
  Role role = Role::kClient;
  std::string name;
  wire::PublicKey key;
  fs::path secret_file;
  fs::path public_file;
  fs::path authorized_file;  // empty: not authorized yet
};

// The default name: the host for a worker, the login for clients and admins.
std::string DefaultName(Role role) {
  if (role == Role::kCoordinator) return "coordinator";
  if (role == Role::kWorker) return HostName();
  const passwd* user = ::getpwuid(::geteuid());
  return user == nullptr ? "" : user->pw_name;
}

Status MakeDirectory(const fs::path& dir) {
  std::error_code error;
  const bool made = fs::create_directories(dir, error);
  if (!error && made) fs::permissions(dir, fs::perms::owner_all, error);
  if (error) {
    return Fail(ErrorKind::kSystem,
                fmt::format("cannot make {}: {}", dir.native(), error.message()));
  }
  return {};
}

Status RefuseIfThere(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return {};
  return Fail(ErrorKind::kExists, fmt::format("{} is there already, and a key is never written "
                                              "over: choose another --out",
                                              path.native()));
}

// Writes both halves into `dir`.
Result<Made> WritePair(const fs::path& dir, Role role, const std::string& name) {
  const fs::path secret_file = dir / (name + std::string(wire::kSecretSuffix));
  const fs::path public_file = dir / (name + std::string(wire::kPublicSuffix));
  LF_TRY_VOID(RefuseIfThere(secret_file));
  LF_TRY_VOID(RefuseIfThere(public_file));
  LF_TRY_VOID(MakeDirectory(dir));
  const wire::KeyPair keys = wire::KeyPair::Generate();
  LF_TRY_VOID(wire::WriteSecretKeyFile(secret_file, {.role = role, .name = name, .keys = keys}));
  LF_TRY_VOID(
      wire::WritePublicKeyFile(public_file, {.role = role, .name = name, .key = keys.public_key}));
  return Made{.role = role,
              .name = name,
              .key = keys.public_key,
              .secret_file = secret_file,
              .public_file = public_file,
              .authorized_file = {}};
}

Result<Made> MakeCoordinator(const fs::path& dir) {
  LF_TRY(Made made, WritePair(dir, Role::kCoordinator, "coordinator"));
  for (const Role role : kAuthorizable) {
    LF_TRY_VOID(MakeDirectory(wire::AuthorizedDir(dir, role)));
  }
  return made;
}

// Creates a key pair. With --authorize it also adds the public half to the coordinator's keys, and
// the coordinator's public key to `dir`.
Result<Made> MakePeer(const fs::path& dir, Role role, const std::string& name,
                      const KeygenFlags& flags) {
  if (flags.authorize.empty()) return WritePair(dir, role, name);
  const fs::path keys = flags.authorize;
  const fs::path authorized =
      wire::AuthorizedDir(keys, role) / (name + std::string(wire::kPublicSuffix));
  LF_TRY(const wire::PublicKeyFile coordinator,
         wire::LoadPublicKeyFile(wire::CoordinatorPublicFile(keys), Role::kCoordinator));
  LF_TRY_VOID(wire::LoadAuthorizedKeys(keys));  // checks that the directory exists and is safe
  std::error_code error;
  if (!flags.replace && fs::exists(fs::symlink_status(authorized, error))) {
    return Fail(ErrorKind::kExists,
                fmt::format("{} '{}' has a key already: {}; --replace puts the new one in its "
                            "place and revokes it, or choose another --name",
                            NameOf(role), name, authorized.native()));
  }
  LF_TRY_VOID(RefuseIfThere(wire::CoordinatorPublicFile(dir)));
  LF_TRY(Made made, WritePair(dir, role, name));
  LF_TRY_VOID(wire::WritePublicKeyFile(wire::CoordinatorPublicFile(dir), coordinator));
  LF_TRY_VOID(
      wire::WritePublicKeyFile(authorized, {.role = role, .name = name, .key = made.key},
                               flags.replace ? wire::IfExists::kReplace : wire::IfExists::kFail));
  made.authorized_file = authorized;
  return made;
}

Result<Made> MakeKeys(const KeygenFlags& flags) {
  LF_TRY_VOID(wire::CheckCurveSupport());
  const auto role = wire::ParseRole(flags.role);
  if (!role) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("--role {}: use client, worker, admin or coordinator", flags.role));
  }
  const std::string name = flags.name.empty() ? DefaultName(*role) : flags.name;
  if (const Status fine = wire::CheckKeyName(name); !fine) {
    return Fail(ErrorKind::kInvalid, fmt::format("--name {}: {}", name, fine.error().message));
  }
  if (*role == Role::kCoordinator) {
    if (name != "coordinator") {
      return Fail(ErrorKind::kInvalid, "--name: a coordinator's key is called coordinator");
    }
    if (!flags.authorize.empty()) {
      return Fail(ErrorKind::kInvalid, "--authorize: a coordinator is authorized by nobody");
    }
    return MakeCoordinator(flags.out.empty() ? "keys" : flags.out);
  }
  if (flags.replace && flags.authorize.empty()) {
    return Fail(ErrorKind::kInvalid, "--replace: nothing is replaced without --authorize");
  }
  return MakePeer(flags.out.empty() ? name + "-keys" : flags.out, *role, name, flags);
}

Json ToJson(const Made& made) {
  Json json = {{"role", NameOf(made.role)},
               {"name", made.name},
               {"key", made.key.ToText()},
               {"secret_file", made.secret_file.native()},
               {"public_file", made.public_file.native()}};
  json["authorized_file"] =
      made.authorized_file.empty() ? Json() : Json(made.authorized_file.native());
  return json;
}

void PrintText(const Made& made) {
  const std::string dir = made.secret_file.parent_path().native();
  fmt::print("{}\n{}\n", made.secret_file.native(), made.public_file.native());
  if (!made.authorized_file.empty()) fmt::print("{}\n", made.authorized_file.native());
  switch (made.role) {
    case Role::kCoordinator:
      fmt::print(stderr,
                 "Next: loopfleet-coordinator --keys {0}\n"
                 "and for each peer: loopfleet keygen --role worker --name NAME --authorize {0}\n",
                 dir);
      return;
    case Role::kClient:
    case Role::kAdmin:
    case Role::kWorker:
      if (made.authorized_file.empty()) {
        fmt::print(stderr,
                   "Next: copy {} to authorized/{}s of the coordinator's keys directory, and its "
                   "coordinator.key to {}\n",
                   made.public_file.native(), NameOf(made.role), dir);
      } else {
        fmt::print(stderr, "Next: move {} to where the {} runs, and start it with --keys {}\n", dir,
                   NameOf(made.role), dir);
      }
      return;
  }
}

int RunKeygen(const KeygenFlags& flags) {
  const auto made = MakeKeys(flags);
  if (!made) {
    fmt::print(stderr, "loopfleet: {}\n", made.error().message);
    return made.error().kind == ErrorKind::kInvalid ? kExitUsage : kExitFailed;
  }
  if (flags.json) {
    fmt::print("{}\n", Dump(ToJson(*made)));
  } else {
    PrintText(*made);
  }
  return kExitOk;
}

}  // namespace

void AddKeygenCommand(CommandLine& line) {
  auto flags = std::make_shared<KeygenFlags>();
  CLI::App& app = line.AddCommand(
      line.root(),
      {.name = "keygen",
       .description = "Make the keys of a coordinator, or of a client, worker or admin",
       .examples = "loopfleet keygen --role coordinator --out keys\n"
                   "loopfleet keygen --role worker --name node7 --out node7-keys --authorize keys\n"
                   "loopfleet keygen --name alice --authorize keys --replace\n"
                   "rm keys/authorized/clients/alice.key    revokes a key, at once"},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return RunKeygen(*flags); });
  app.add_option("--role", flags->role, "client (default), worker, admin or coordinator")
      ->type_name("ROLE");
  app.add_option("--name", flags->name,
                 "what the coordinator calls the peer (default: the login, for workers the host)");
  app.add_option("--out", flags->out,
                 "directory for the files (default: NAME-keys, for coordinators keys)")
      ->type_name("DIR");
  app.add_option("--authorize", flags->authorize,
                 "let the key in: this is the coordinator's keys directory")
      ->type_name("DIR");
  app.add_flag("--replace", flags->replace,
               "with --authorize: take the place of the peer's old key, which is revoked");
  app.add_flag("--json", flags->json, "print one JSON object");
}

}  // namespace loopfleet::client
