#include "common/wire/codec/field.h"

#include <algorithm>

#include "common/wire/codec/utf8.h"

namespace loopfleet::wire {

std::string ReadText(capnp::Text::Reader text, std::size_t max_bytes, std::string_view what) {
  const std::string_view view(text.begin(), text.size());
  if (view.size() > max_bytes) {
    RefuseMalformed(fmt::format("{} has {} bytes; at most {}", what, view.size(), max_bytes));
  }
  if (!IsUtf8(view)) RefuseMalformed(fmt::format("{} is not UTF-8", what));
  return std::string(view);
}

capnp::Data::Reader DataOf(const Uuid& uuid) { return {uuid.bytes.data(), uuid.bytes.size()}; }

Uuid ReadUuid(capnp::Data::Reader data, std::string_view what) {
  Uuid uuid;
  if (data.size() != uuid.bytes.size()) {
    RefuseMalformed(fmt::format("{} has {} bytes, not {}", what, data.size(), uuid.bytes.size()));
  }
  std::copy(data.begin(), data.end(), uuid.bytes.begin());
  return uuid;
}

Uuid ReadUuidNotNil(capnp::Data::Reader data, std::string_view what) {
  const Uuid uuid = ReadUuid(data, what);
  if (uuid.is_nil()) RefuseMalformed(fmt::format("{} is all zeros", what));
  return uuid;
}

void RefuseNotFinite(std::string_view what) {
  RefuseMalformed(fmt::format("{} is not a finite number", what));
}

double ReadAmount(double value, std::string_view what) {
  if (ReadFinite(value, what) < 0) RefuseMalformed(fmt::format("{} is below 0", what));
  return value;
}

std::vector<std::string> ReadTexts(capnp::List<capnp::Text>::Reader list,
                                   const TextListBounds& bounds, std::string_view what) {
  std::vector<std::string> texts;
  texts.reserve(Bounded(list, static_cast<std::uint32_t>(bounds.entries), what).size());
  for (const capnp::Text::Reader text : list) {
    texts.push_back(ReadText(text, bounds.entry_bytes, what));
  }
  return texts;
}

void WriteTexts(std::span<const std::string> texts, capnp::List<capnp::Text>::Builder list) {
  for (unsigned i = 0; i < texts.size(); ++i) list.set(i, TextOf(texts[i]));
}

}  // namespace loopfleet::wire
