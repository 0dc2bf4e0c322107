#pragma once
// Internal to the codec. Fields common to all messages: texts, UUIDs, bounded lists, enumerations.
// Readers throw Refusal (frame.h).

#include <capnp/blob.h>
#include <capnp/list.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/enum_names.h"
#include "common/base/uuid.h"
#include "common/wire/bounds.h"
#include "common/wire/codec/frame.h"

namespace loopfleet::wire {

inline capnp::Text::Reader TextOf(const std::string& text) { return {text.data(), text.size()}; }

// Refuses, under the name `what`, a text that is not UTF-8 or exceeds `max_bytes`.
std::string ReadText(capnp::Text::Reader text, std::size_t max_bytes, std::string_view what);

capnp::Data::Reader DataOf(const Uuid& uuid);
Uuid ReadUuid(capnp::Data::Reader data, std::string_view what);
Uuid ReadUuidNotNil(capnp::Data::Reader data, std::string_view what);

inline std::int64_t NanosOf(WallTime time) { return time.time_since_epoch().count(); }
inline WallTime WallTimeOf(std::int64_t nanos) { return WallTime(Nanos(nanos)); }

[[noreturn]] void RefuseNotFinite(std::string_view what);
// Inline, because the columns of a page have a hundred thousand values.
inline double ReadFinite(double value, std::string_view what) {
  if (!std::isfinite(value)) [[unlikely]]
    RefuseNotFinite(what);
  return value;
}
double ReadAmount(double value, std::string_view what);  // finite, and not below 0

// Returns `list`; refuses it if it has more than `max` entries.
template <class List>
List Bounded(List list, std::uint32_t max, std::string_view what) {
  if (list.size() > max) {
    RefuseMalformed(fmt::format("{} has {} entries; at most {}", what, list.size(), max));
  }
  return list;
}

struct TextListBounds {
  std::size_t entries = 0;
  std::size_t entry_bytes = 0;
};
inline constexpr TextListBounds kHindranceBounds{.entries = kMaxHindrances,
                                                 .entry_bytes = kMaxHindranceBytes};
std::vector<std::string> ReadTexts(capnp::List<capnp::Text>::Reader list,
                                   const TextListBounds& bounds, std::string_view what);
void WriteTexts(std::span<const std::string> texts, capnp::List<capnp::Text>::Builder list);

// Ids are integers on the wire; 0 is refused.
template <class Id>
std::vector<Id> ReadIds(capnp::List<std::uint64_t>::Reader list, std::uint32_t max,
                        std::string_view what) {
  std::vector<Id> ids;
  ids.reserve(Bounded(list, max, what).size());
  for (const std::uint64_t value : list) {
    if (value == 0) RefuseMalformed(fmt::format("{} holds the id 0", what));
    ids.push_back(Id{value});
  }
  return ids;
}
template <class Id>
void WriteIds(std::span<const Id> ids, capnp::List<std::uint64_t>::Builder list) {
  for (unsigned i = 0; i < ids.size(); ++i) list.set(i, ids[i].value);
}

// A member of a struct, and the field of the schema that it travels in. A list's kSetter makes one.
template <auto kMember, auto kGetter, auto kSetter>
struct Place {
  static constexpr auto kGet = kGetter;
  static constexpr auto kSet = kSetter;
};
template <auto kMember, auto kGetter, auto kSetter>
Place<kMember, kGetter, kSetter> PlaceOf(const Place<kMember, kGetter, kSetter>& place);
// The one of `Places`, which derives from a Place for each member. A member that has none does not
// compile.
template <class Places, auto kMember>
using PlaceIn = decltype(PlaceOf<kMember>(Places{}));

// Whether a value has the number of this enumerant of the schema: for static_assert.
template <class Wire, class E>
constexpr bool IsEnumerant(Wire wire, E value) {
  return static_cast<int>(wire) == static_cast<int>(value);
}

// An enumeration whose values have the numbers of the schema's enumerants.
template <class E>
E ReadEnum(std::uint16_t number, std::string_view what) {
  constexpr auto& kAll = EnumNames<E>::kAll;
  static_assert([] {
    for (std::size_t i = 0; i < kAll.size(); ++i) {
      if (static_cast<std::size_t>(kAll[i].value) != i) return false;
    }
    return true;
  }());
  if (number >= kAll.size()) {
    RefuseUnsupported(fmt::format("{} {} is not known to this version", what, number));
  }
  return static_cast<E>(number);
}

// Maps an enumeration of the schema to its counterpart in the domain.
template <class Wire, class Domain, std::size_t N>
struct EnumTable {
  std::string_view name;
  std::array<std::pair<Wire, Domain>, N> pairs;

  Wire ToWire(Domain value) const {
    for (const auto& [wire, domain] : pairs) {
      if (domain == value) return wire;
    }
    LF_CHECK(false, "a {} has no number on the wire", name);
  }
  Domain FromWire(Wire value) const {
    for (const auto& [wire, domain] : pairs) {
      if (wire == value) return domain;
    }
    RefuseUnsupported(
        fmt::format("{} {} is not known to this version", name, static_cast<std::uint16_t>(value)));
  }
};

}  // namespace loopfleet::wire
