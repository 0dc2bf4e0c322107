// Key files and directories: which are read, which are refused, and the remedy in each error.

#include "common/wire/keys/key_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "common/base/unique_fd.h"
#include "common/wire/keys/key_directory.h"
#include "tests/unit/wire/keys/private_directory.h"

namespace loopfleet::wire {
namespace {

namespace fs = std::filesystem;

// A key pair in Z85 text (https://rfc.zeromq.org/spec/32), as pyzmq writes it.
constexpr std::string_view kPyzmqSecret =
    "#   ****  Generated on 2026-11-22 01:02:03.000000 by pyzmq  ****\n"
    "#   ZeroMQ CURVE **Secret** Certificate\n"
    "#   DO NOT PROVIDE THIS FILE TO OTHER USERS nor change its permissions.\n"
    "\n"
    "metadata\n"
    "curve\n"
    "    public-key = \"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID\"\n"
    "    secret-key = \"D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs\"\n";

void Write(const fs::path& path, std::string_view text, mode_t mode) {
  std::ofstream(path) << text;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

template <class T>
void ExpectError(const Result<T>& result, std::string_view part,
                 std::optional<ErrorKind> kind = std::nullopt) {
  ASSERT_FALSE(result.has_value()) << "expected: " << part;
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  if (kind) {
    EXPECT_EQ(result.error().kind, *kind) << result.error().message;
  }
}

TEST(Key, TextAndBack) {
  const KeyPair pair = KeyPair::Generate();
  const std::string text = pair.public_key.ToText();
  EXPECT_EQ(text.size(), kKeyTextBytes);
  EXPECT_EQ(PublicKey::Parse(text).value(), pair.public_key);
  EXPECT_EQ(SecretKey::Parse(pair.secret_key.ToText()).value().PublicHalf(), pair.public_key);
  EXPECT_NE(KeyPair::Generate().public_key, pair.public_key);
  EXPECT_TRUE(text.starts_with(pair.public_key.Fingerprint()));
  EXPECT_LT(pair.public_key.Fingerprint().size(), text.size());
}

TEST(Key, WhatIsNoKey) {
  const std::string text = KeyPair::Generate().public_key.ToText();
  ExpectError(PublicKey::Parse(""), "Z85");
  ExpectError(PublicKey::Parse(text.substr(1)), "Z85");
  ExpectError(PublicKey::Parse(text + "0"), "Z85");
  for (const char c : {' ', '"', '\\', '~', '\0', '\x80'}) {
    ExpectError(PublicKey::Parse(text.substr(1) + c), "Z85");
  }
  // Five characters can encode more than four bytes hold; such a text is not a key.
  ExpectError(PublicKey::Parse(std::string(40, '#')), "Z85");
}

TEST(Key, CurveIsSupportedHere) { EXPECT_TRUE(CheckCurveSupport().has_value()); }

TEST(KeyFile, ReadsPyzmqs) {
  const auto file = ParseSecretKeyFile(kPyzmqSecret, Role::kWorker);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->role, Role::kWorker) << "its place says what it is for";
  EXPECT_EQ(file->name, "");
  EXPECT_EQ(file->keys.public_key.ToText(), "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");
}

TEST(KeyFile, WritesWhatItReads) {
  const KeyPair pair = KeyPair::Generate();
  const auto secret = ParseSecretKeyFile(
      FormatSecretKeyFile({.role = Role::kAdmin, .name = "root", .keys = pair}), Role::kClient);
  ASSERT_TRUE(secret.has_value()) << secret.error().message;
  EXPECT_EQ(secret->role, Role::kAdmin);
  EXPECT_EQ(secret->name, "root");
  EXPECT_EQ(secret->keys.public_key, pair.public_key);
  EXPECT_EQ(secret->keys.secret_key.bytes(), pair.secret_key.bytes());
  const auto open = ParsePublicKeyFile(
      FormatPublicKeyFile({.role = Role::kWorker, .name = "node-7", .key = pair.public_key}),
      Role::kClient);
  ASSERT_TRUE(open.has_value()) << open.error().message;
  EXPECT_EQ(open->role, Role::kWorker);
  EXPECT_EQ(open->name, "node-7");
  EXPECT_EQ(open->key, pair.public_key);
}

TEST(KeyFile, WhatIsNoKeyFile) {
  const std::string whole(kPyzmqSecret);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = whole;
    return text.replace(text.find(from), from.size(), to);
  };
  const auto expect = [](const std::string& text, std::string_view part) {
    ExpectError(ParseSecretKeyFile(text, Role::kClient), part, ErrorKind::kCorrupt);
  };
  expect("", "no line 'public-key");
  expect(with("public-key", "publik-key"), "no line 'public-key");
  expect(with("secret-key", "secrets"), "no line 'secret-key");
  expect(with("Yne@", "Yne"), "public-key is not 40");
  expect(with("D:)Q", "D:)Q0"), "secret-key is not 40");
  expect(with("D:)Q", "E:)Q"), "does not belong");
  expect(with("metadata\n", "metadata\n role = \"king\"\n"), "its role is none of");
  expect(with("metadata\n", "metadata\n name = \"../x\"\n"), "a key's name");
  expect(whole + whole, "stands in it twice");
  expect(whole + std::string(5000, '\n'), "longer than a key file");
  ExpectError(ParsePublicKeyFile(whole, Role::kClient), "a secret key stands in it");
}

TEST(KeyFile, Names) {
  for (const char* name : {"a", "alice", "node-7.rack_2", "A"}) {
    EXPECT_TRUE(CheckKeyName(name).has_value()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string(".hidden"), std::string("a/b"), std::string("a b"),
        std::string(65, 'a'), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(CheckKeyName(name).has_value()) << name;
  }
}

class KeyFileTest : public ::testing::Test {
 protected:
  fs::path Path(const char* name) const { return fs::path(directory_.path()) / name; }
  const PrivateDirectory directory_;
};

TEST_F(KeyFileTest, SecretsAreWrittenForTheirUserAlone) {
  const mode_t before = ::umask(0);
  const fs::path path = Path("alice.key_secret");
  const SecretKeyFile file{.role = Role::kClient, .name = "alice", .keys = KeyPair::Generate()};
  EXPECT_TRUE(WriteSecretKeyFile(path, file).has_value());
  ::umask(before);
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(info.st_nlink, 1u) << "no draft is left";
  EXPECT_TRUE(LoadSecretKeyFile(path, Role::kClient).has_value());
  ExpectError(WriteSecretKeyFile(path, file), "never written over", ErrorKind::kExists);
}

TEST_F(KeyFileTest, SecretsThatOthersMayReadAreRefused) {
  const fs::path path = Path("alice.key_secret");
  Write(path, kPyzmqSecret, 0600);
  EXPECT_TRUE(LoadSecretKeyFile(path, Role::kClient).has_value());
  EXPECT_EQ(::chmod(path.c_str(), 0400), 0);
  EXPECT_TRUE(LoadSecretKeyFile(path, Role::kClient).has_value());
  for (const mode_t mode : {0640u, 0604u, 0620u, 0610u, 0777u, 0601u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    ExpectError(LoadSecretKeyFile(path, Role::kClient), "chmod 600 " + path.native(),
                ErrorKind::kInvalid);
  }
}

TEST_F(KeyFileTest, PublicFilesThatOthersMayWriteAreRefused) {
  const fs::path path = Path("alice.key");
  const PublicKeyFile file{.name = "alice", .key = KeyPair::Generate().public_key};
  ASSERT_TRUE(WritePublicKeyFile(path, file).has_value());
  EXPECT_TRUE(LoadPublicKeyFile(path, Role::kClient).has_value());
  for (const mode_t mode : {0664u, 0646u, 0666u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    ExpectError(LoadPublicKeyFile(path, Role::kClient), "chmod 644 " + path.native(),
                ErrorKind::kInvalid);
  }
}

TEST_F(KeyFileTest, FilesOfOthersAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const fs::path path = Path("alice.key_secret");
  Write(path, kPyzmqSecret, 0600);
  ASSERT_EQ(::chown(path.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  ExpectError(LoadSecretKeyFile(path, Role::kClient), "chown 0 " + path.native(),
              ErrorKind::kInvalid);
  const fs::path open = Path("alice.key");
  ASSERT_TRUE(WritePublicKeyFile(open, {.name = "alice", .key = KeyPair::Generate().public_key})
                  .has_value());
  ASSERT_EQ(::chown(open.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  ExpectError(LoadPublicKeyFile(open, Role::kClient), "could put another key there",
              ErrorKind::kInvalid);
}

TEST_F(KeyFileTest, OnlyPlainFilesAreRead) {
  Write(Path("real"), kPyzmqSecret, 0600);
  fs::create_symlink(Path("real"), Path("link.key_secret"));
  ExpectError(LoadSecretKeyFile(Path("link.key_secret"), Role::kClient), "symbolic link");
  ASSERT_EQ(::mkfifo(Path("pipe.key_secret").c_str(), 0600), 0);
  ExpectError(LoadSecretKeyFile(Path("pipe.key_secret"), Role::kClient), "not a plain file");
  fs::create_directory(Path("dir.key_secret"));
  ExpectError(LoadSecretKeyFile(Path("dir.key_secret"), Role::kClient), "not a plain file");
  ExpectError(LoadSecretKeyFile(Path("none"), Role::kClient), "No such file", ErrorKind::kNotFound);
  Write(Path("long.key_secret"), std::string(1 << 20, '#'), 0600);
  ExpectError(LoadSecretKeyFile(Path("long.key_secret"), Role::kClient), "longer than a key file");
}

// A coordinator's directory with a key for each role.
class KeyDirectoryTest : public KeyFileTest {
 protected:
  KeyDirectoryTest() : dir_(Path("keys")) {
    fs::create_directory(dir_);
    for (const Role role : {Role::kClient, Role::kWorker, Role::kAdmin}) {
      fs::create_directories(AuthorizedDir(dir_, role));
    }
    Authorize(Role::kClient, "alice", alice_);
    Authorize(Role::kWorker, "node7", node_);
    Authorize(Role::kAdmin, "root", root_);
  }
  void Authorize(Role role, const std::string& name, const PublicKey& key) const {
    const fs::path path = AuthorizedDir(dir_, role) / (name + ".key");
    ASSERT_TRUE(WritePublicKeyFile(path, {.role = role, .name = name, .key = key}).has_value());
  }

  const fs::path dir_;
  const PublicKey alice_ = KeyPair::Generate().public_key;
  const PublicKey node_ = KeyPair::Generate().public_key;
  const PublicKey root_ = KeyPair::Generate().public_key;
};

TEST_F(KeyDirectoryTest, TheFilesNameIsThePeers) {
  const auto loaded = LoadAuthorizedKeys(dir_);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_TRUE(loaded->problems.empty());
  EXPECT_EQ(loaded->keys.size(), 3u);
  EXPECT_EQ(*loaded->keys.Find(alice_), (Principal{.role = Role::kClient, .name = "alice"}));
  EXPECT_EQ(*loaded->keys.Find(node_), (Principal{.role = Role::kWorker, .name = "node7"}));
  EXPECT_EQ(*loaded->keys.Find(root_), (Principal{.role = Role::kAdmin, .name = "root"}));
  EXPECT_EQ(loaded->keys.Find(KeyPair::Generate().public_key), nullptr);
}

// A bad file authorizes no key and affects no other file.
TEST_F(KeyDirectoryTest, BadFilesAuthorizeNobody) {
  const fs::path clients = AuthorizedDir(dir_, Role::kClient);
  Write(clients / "empty.key", "", 0644);
  Write(clients / "bad name.key", "", 0644);
  Write(clients / "notes.txt", "not looked at", 0666);
  Write(clients / ".draft.key.1", "not looked at", 0600);
  fs::create_symlink(clients / "alice.key", clients / "bob.key");
  Authorize(Role::kAdmin, "alice", alice_);  // the weaker role counts
  fs::copy(AuthorizedDir(dir_, Role::kWorker) / "node7.key", clients / "node7.key");
  Authorize(Role::kClient, "carol", KeyPair::Generate().public_key);
  ASSERT_EQ(::chmod((clients / "carol.key").c_str(), 0666), 0);
  const auto loaded = LoadAuthorizedKeys(dir_);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->keys.size(), 3u);
  EXPECT_EQ(loaded->keys.Find(alice_)->role, Role::kClient);
  ASSERT_EQ(loaded->problems.size(), 6u);
  const auto told = [&](std::string_view part) {
    for (const std::string& problem : loaded->problems) {
      if (problem.find(part) != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(told("empty.key: it has no line 'public-key"));
  EXPECT_TRUE(told("bad name.key: a key's name has"));
  EXPECT_TRUE(told("bob.key is a symbolic link"));
  EXPECT_TRUE(told("admins/alice.key: the same key is authorized as client alice already"));
  EXPECT_TRUE(told("clients/node7.key: it is the key of a worker, not of a client"));
  EXPECT_TRUE(told("chmod 644"));
}

// The same for a file that cannot be opened: a socket, or mode 0 (which root can open).
TEST_F(KeyDirectoryTest, AFileThatCannotBeOpenedKeepsNobodyElseOut) {
  const fs::path clients = AuthorizedDir(dir_, Role::kClient);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = (clients / "x.key").native();
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  std::size_t problems = 1;
  if (::geteuid() != 0) {
    Authorize(Role::kClient, "closed", KeyPair::Generate().public_key);
    ASSERT_EQ(::chmod((clients / "closed.key").c_str(), 0), 0);
    ++problems;
  }
  const auto loaded = LoadAuthorizedKeys(dir_);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->keys.size(), 3u);
  ASSERT_EQ(loaded->problems.size(), problems);
  EXPECT_NE(loaded->problems.back().find("x.key: "), std::string::npos) << loaded->problems.back();
}

// Running out of descriptors says nothing about a file: it is an error, and the keys stay as is.
TEST_F(KeyDirectoryTest, WantOfDescriptorsIsNoFilesFault) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto file =
      LoadPublicKeyFile(AuthorizedDir(dir_, Role::kClient) / "alice.key", Role::kClient);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ExpectError(file, "Too many open files", ErrorKind::kSystem);
}

TEST_F(KeyDirectoryTest, DirectoriesThatOthersMayWriteAuthorizeNobody) {
  for (const fs::path& place : {dir_, dir_ / "authorized", AuthorizedDir(dir_, Role::kAdmin)}) {
    ASSERT_EQ(::chmod(place.c_str(), 0775), 0);
    ExpectError(LoadAuthorizedKeys(dir_), "chmod go-w " + place.native(), ErrorKind::kInvalid);
    ASSERT_EQ(::chmod(place.c_str(), 0755), 0);
  }
  EXPECT_TRUE(LoadAuthorizedKeys(dir_).has_value());
  fs::remove_all(AuthorizedDir(dir_, Role::kWorker));
  ExpectError(LoadAuthorizedKeys(dir_), "workers: No such file", ErrorKind::kNotFound);
  fs::create_symlink("workers", AuthorizedDir(dir_, Role::kWorker));  // a link to itself
  ExpectError(LoadAuthorizedKeys(dir_), "workers: Too many levels", ErrorKind::kInvalid);
}

TEST_F(KeyDirectoryTest, TheCoordinatorsOwnKey) {
  ExpectError(LoadCoordinatorKeys(dir_),
              "`loopfleet keygen --role coordinator --out " + dir_.native() + "` makes it",
              ErrorKind::kNotFound);
  const KeyPair pair = KeyPair::Generate();
  const fs::path path = CoordinatorSecretFile(dir_);
  ASSERT_TRUE(
      WriteSecretKeyFile(path, {.role = Role::kCoordinator, .name = "coordinator", .keys = pair})
          .has_value());
  EXPECT_EQ(LoadCoordinatorKeys(dir_).value().public_key, pair.public_key);
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  ExpectError(LoadCoordinatorKeys(dir_), "chmod 600", ErrorKind::kInvalid);
  fs::remove(path);
  ASSERT_TRUE(WriteSecretKeyFile(path, {.role = Role::kClient, .name = "x", .keys = pair}));
  ExpectError(LoadCoordinatorKeys(dir_), "is the key of a client, not of a coordinator",
              ErrorKind::kInvalid);
}

TEST_F(KeyFileTest, APeersDirectory) {
  constexpr std::array kClients = {Role::kClient, Role::kAdmin};
  constexpr std::array kWorkers = {Role::kWorker};
  const fs::path dir = Path("alice-keys");
  ExpectError(LoadPeerKeys(dir, kClients), "No such file", ErrorKind::kNotFound);
  fs::create_directory(dir);
  ExpectError(LoadPeerKeys(dir, kClients), "`loopfleet keygen --role client --out " + dir.native(),
              ErrorKind::kNotFound);
  const KeyPair own = KeyPair::Generate();
  const KeyPair coordinator = KeyPair::Generate();
  ASSERT_TRUE(WriteSecretKeyFile(dir / "alice.key_secret",
                                 {.role = Role::kClient, .name = "alice", .keys = own}));
  ExpectError(LoadPeerKeys(dir, kClients), "copy coordinator.key there", ErrorKind::kNotFound);
  ASSERT_TRUE(WritePublicKeyFile(
      CoordinatorPublicFile(dir),
      {.role = Role::kCoordinator, .name = "coordinator", .key = coordinator.public_key}));
  const auto keys = LoadPeerKeys(dir, kClients);
  ASSERT_TRUE(keys.has_value()) << keys.error().message;
  EXPECT_EQ(keys->self, (Principal{.role = Role::kClient, .name = "alice"}));
  EXPECT_EQ(keys->own.public_key, own.public_key);
  EXPECT_EQ(keys->coordinator, coordinator.public_key);
  ExpectError(LoadPeerKeys(dir, kWorkers), "is the key of a client, and a worker's is needed");

  ASSERT_TRUE(WriteSecretKeyFile(dir / "root.key_secret",
                                 {.role = Role::kAdmin, .name = "root", .keys = own}));
  ExpectError(LoadPeerKeys(dir, kClients), "alice.key_secret, root.key_secret");
  fs::remove(dir / "root.key_secret");
  ASSERT_EQ(::chmod((dir / "alice.key_secret").c_str(), 0640), 0);
  ExpectError(LoadPeerKeys(dir, kClients), "chmod 600");
  ASSERT_EQ(::chmod((dir / "alice.key_secret").c_str(), 0600), 0);
  ASSERT_EQ(::chmod(dir.c_str(), 0777), 0);
  ExpectError(LoadPeerKeys(dir, kClients), "chmod go-w " + dir.native());
}

}  // namespace
}  // namespace loopfleet::wire
