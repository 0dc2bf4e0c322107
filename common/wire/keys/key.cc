#include "common/wire/keys/key.h"

#include <fmt/format.h>
#include <string.h>
#include <zmq.h>

#include <algorithm>

#include "common/base/check.h"

namespace loopfleet::wire {
namespace {

using Bytes = std::array<std::uint8_t, kKeyBytes>;
using Text = std::array<char, kKeyTextBytes + 1>;

constexpr std::string_view kZ85 =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
constexpr std::size_t kFingerprintCharacters = 8;

// zmq_z85_decode accepts some characters that no encoder writes, which would give one key several
// texts.
Result<Bytes> Decode(std::string_view z85) {
  const auto known = [](char c) { return kZ85.find(c) != std::string_view::npos; };
  Text text{};
  Bytes bytes{};
  if (z85.size() == kKeyTextBytes && std::ranges::all_of(z85, known)) {
    std::ranges::copy(z85, text.begin());
    if (::zmq_z85_decode(bytes.data(), text.data()) != nullptr) return bytes;
  }
  return Fail(ErrorKind::kInvalid, "not a key: 40 characters of Z85 are");
}

std::string Encode(const Bytes& bytes) {
  Text text{};
  LF_CHECK(::zmq_z85_encode(text.data(), bytes.data(), bytes.size()) != nullptr, "Z85");
  return text.data();
}

}  // namespace

Result<PublicKey> PublicKey::Parse(std::string_view z85) {
  LF_TRY(const Bytes bytes, Decode(z85));
  return PublicKey{bytes};
}

std::string PublicKey::ToText() const { return Encode(bytes); }

std::string PublicKey::Fingerprint() const { return ToText().substr(0, kFingerprintCharacters); }

SecretKey::~SecretKey() { ::explicit_bzero(bytes_.data(), bytes_.size()); }

Result<SecretKey> SecretKey::Parse(std::string_view z85) {
  LF_TRY(const Bytes bytes, Decode(z85));
  SecretKey key;
  key.bytes_ = bytes;
  return key;
}

std::string SecretKey::ToText() const { return Encode(bytes_); }

PublicKey SecretKey::PublicHalf() const {
  Text public_text{};
  std::string secret_text = ToText();
  LF_CHECK(::zmq_curve_public(public_text.data(), secret_text.c_str()) == 0, "{}",
           ::zmq_strerror(::zmq_errno()));
  ::explicit_bzero(secret_text.data(), secret_text.size());
  return PublicKey::Parse({public_text.data(), kKeyTextBytes}).value();
}

KeyPair KeyPair::Generate() {
  Text public_text{};
  Text secret_text{};
  LF_CHECK(::zmq_curve_keypair(public_text.data(), secret_text.data()) == 0, "{}",
           ::zmq_strerror(::zmq_errno()));
  KeyPair pair{.public_key = PublicKey::Parse({public_text.data(), kKeyTextBytes}).value(),
               .secret_key = SecretKey::Parse({secret_text.data(), kKeyTextBytes}).value()};
  ::explicit_bzero(secret_text.data(), secret_text.size());
  return pair;
}

Status CheckCurveSupport() {
  // 4.3.3 fixed the last known pre-authentication vulnerabilities; 4.3.4 is the oldest one tested.
  constexpr int kOldest = ZMQ_MAKE_VERSION(4, 3, 4);
  int major = 0;
  int minor = 0;
  int patch = 0;
  ::zmq_version(&major, &minor, &patch);
  if (ZMQ_MAKE_VERSION(major, minor, patch) < kOldest) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("libzmq {}.{}.{} is too old for --keys: install 4.3.4 or later", major,
                            minor, patch));
  }
  if (::zmq_has("curve") != 1) {
    return Fail(ErrorKind::kInvalid,
                "the installed libzmq was built without CURVE, which --keys needs: install "
                "Debian's libzmq5");
  }
  return {};
}

}  // namespace loopfleet::wire
