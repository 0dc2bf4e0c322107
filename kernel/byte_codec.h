#pragma once
// Encodes plain values as bytes and decodes them, for the private messages between the daemon and
// its children. Both are one build on one host, so the byte order is native. A reader never reads
// beyond its bytes: from the first missing value on it returns zeros and ok() is false, so a
// decoder checks once, at the end.
//
// The fields of a struct stand once, for writing and reading alike, in the struct's namespace:
//   template <class Archive>
//   void Fields(Archive& archive, FieldsOf<Archive, Point>& point) {
//     archive(point.x, point.y);
//     archive.Require([&] { return point.x <= point.y; });
//   }
// Enumerations travel by Enum and lists with a bound of their own by List.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace loopfleet {

template <class Archive, class T>
using FieldsOf = std::conditional_t<Archive::kReads, T, const T>;

template <class T>
concept ByteNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

class ByteWriter {
 public:
  static constexpr bool kReads = false;

  // Reserved at once: an executor writes its replies on the timing core, where growing in steps
  // would cost time.
  ByteWriter() { bytes_.reserve(1024); }
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void PutText(std::string_view text) {
    Put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  std::string Take() { return std::move(bytes_); }

  template <class... Ts>
  void operator()(const Ts&... values) {
    (Each(values), ...);
  }
  template <class E>
  void Enum(E value, E /*last*/) {
    Put(value);
  }
  void Text(const std::string& text, std::size_t /*most*/) { PutText(text); }
  template <class Values>
  void List(const Values& values, std::uint64_t /*most*/ = 0) {
    Put(static_cast<std::uint64_t>(values.size()));
    for (const auto& value : values) Each(value);
  }
  template <class Condition>
  void Require(Condition&& /*condition*/) {}

 private:
  template <ByteNumber T>
  void Each(const T& value) {
    Put(value);
  }
  void Each(bool value) { Put(static_cast<std::uint8_t>(value)); }
  template <class Rep, class Period>
  void Each(const std::chrono::duration<Rep, Period>& value) {
    Put(value.count());
  }
  void Each(const std::string& text) { PutText(text); }
  template <class T>
  void Each(const std::optional<T>& value) {
    Each(value.has_value());
    if (value) Each(*value);
  }
  template <class A, class B>
  void Each(const std::pair<A, B>& value) {
    (*this)(value.first, value.second);
  }
  template <class T, std::size_t N>
  void Each(const std::array<T, N>& values) {
    for (const T& value : values) Each(value);
  }
  template <class... Ts>
  void Each(const std::variant<Ts...>& value) {
    Put(static_cast<std::uint8_t>(value.index()));
    std::visit([&](const auto& held) { Each(held); }, value);
  }
  template <class T, class Error>
  void Each(const std::expected<T, Error>& value) {
    Each(value.has_value());
    if (value) {
      Each(*value);
    } else {
      Each(value.error());
    }
  }
  template <class T>
  void Each(const T& value) {
    if constexpr (requires { typename T::value_type; }) {
      List(value);
    } else {
      Fields(*this, value);
    }
  }

  std::string bytes_;
};

class ByteReader {
 public:
  static constexpr bool kReads = true;

  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  T Get() {
    T value{};
    const std::string_view bytes = GetBytes(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view GetText() { return GetBytes(Get<std::uint64_t>()); }

  template <class... Ts>
  void operator()(Ts&... values) {
    (Each(values), ...);
  }
  // A value above `last` is junk.
  template <class E>
  void Enum(E& value, E last) {
    const auto number = Get<std::underlying_type_t<E>>();
    if (number < 0 || number > static_cast<std::underlying_type_t<E>>(last)) ok_ = false;
    value = ok_ ? static_cast<E>(number) : E{};
  }
  // Keeps the first `most` bytes.
  void Text(std::string& text, std::size_t most) { text = GetText().substr(0, most); }
  // More than `most` values are junk, as are more than there can be bytes for.
  template <class Values>
  void List(Values& values, std::uint64_t most = UINT64_MAX) {
    using Value = typename Values::value_type;
    values.clear();
    const auto count = Get<std::uint64_t>();
    if (count > most || count > rest_.size()) ok_ = false;
    if constexpr (requires { values.reserve(count); }) {
      if (ok_) values.reserve(std::min<std::uint64_t>(count, rest_.size() / sizeof(Value)));
    }
    for (std::uint64_t i = 0; ok_ && i < count; ++i) {
      Value value{};
      Each(value);
      values.insert(values.end(), std::move(value));
    }
  }
  // Junk unless condition() holds.
  template <class Condition>
  void Require(Condition&& condition) {
    ok_ = ok_ && condition();
  }

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  template <ByteNumber T>
  void Each(T& value) {
    value = Get<T>();
  }
  void Each(bool& value) { value = Get<std::uint8_t>() != 0; }
  template <class Rep, class Period>
  void Each(std::chrono::duration<Rep, Period>& value) {
    value = std::chrono::duration<Rep, Period>(Get<Rep>());
  }
  void Each(std::string& text) { text = GetText(); }
  template <class T>
  void Each(std::optional<T>& value) {
    value.reset();
    if (Get<std::uint8_t>() != 0) Each(value.emplace());
  }
  template <class A, class B>
  void Each(std::pair<A, B>& value) {
    (*this)(value.first, value.second);
  }
  template <class T, std::size_t N>
  void Each(std::array<T, N>& values) {
    for (T& value : values) Each(value);
  }
  template <class... Ts>
  void Each(std::variant<Ts...>& value) {
    const auto index = Get<std::uint8_t>();
    std::uint8_t next = 0;
    const bool is_known = ((next++ == index && (Each(value.template emplace<Ts>()), true)) || ...);
    if (!is_known) ok_ = false;
  }
  template <class T, class Error>
  void Each(std::expected<T, Error>& value) {
    if (Get<std::uint8_t>() != 0) {
      Each(value.emplace());
    } else {
      Error error{};
      Each(error);
      value = std::unexpected(std::move(error));
    }
  }
  template <class T>
  void Each(T& value) {
    if constexpr (requires { typename T::value_type; }) {
      List(value);
    } else {
      Fields(*this, value);
    }
  }
  std::string_view GetBytes(std::uint64_t count) {
    if (!ok_ || count > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }

  std::string_view rest_;
  bool ok_ = true;
};

template <class Message>
std::string EncodeBytes(const Message& message) {
  ByteWriter writer;
  writer(message);
  return writer.Take();
}

// nullopt: the bytes are not those of exactly one message.
template <class Message>
std::optional<Message> DecodeBytes(std::string_view bytes) {
  ByteReader reader(bytes);
  std::optional<Message> message(std::in_place);
  reader(*message);
  if (!reader.AtEnd()) message.reset();
  return message;
}

}  // namespace loopfleet
