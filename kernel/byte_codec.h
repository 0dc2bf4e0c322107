#pragma once
// Encodes plain values as bytes and decodes them, for the private messages between the daemon and
// its children. Both are one build on one host, so the byte order is native. A reader never reads
// beyond its bytes: from the first missing value on it returns zeros and ok() is false, so a
// decoder checks once, at the end.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace loopfleet {

class ByteWriter {
 public:
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

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  T Get() {
    T value{};
    const std::string_view bytes = GetBytes(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  // A value above `last` is junk.
  template <class E>
    requires std::is_enum_v<E>
  E GetEnum(E last) {
    const auto number = Get<std::underlying_type_t<E>>();
    if (number > static_cast<std::underlying_type_t<E>>(last)) ok_ = false;
    return ok_ ? static_cast<E>(number) : E{};
  }
  std::string_view GetText() { return GetBytes(Get<std::uint64_t>()); }
  // The number of elements that follow. Junk if it exceeds `most` or the number of bytes left.
  std::uint64_t GetCount(std::uint64_t most) {
    const auto count = Get<std::uint64_t>();
    if (count > most || count > rest_.size()) ok_ = false;
    return ok_ ? count : 0;
  }

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
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

}  // namespace loopfleet
