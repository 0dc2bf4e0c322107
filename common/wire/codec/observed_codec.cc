#include "common/wire/codec/observed_codec.h"

#include <utility>

#include "common/wire/codec/blob_codec.h"
#include "common/wire/codec/column.h"
#include "common/wire/codec/field.h"
#include "common/wire/codec/frame.h"
#include "common/wire/codec/utf8.h"

namespace loopfleet::wire {
namespace {

struct ValueWriter {
  schema::ObservedValue::Builder builder;
  void operator()(double number) { builder.setNumber(number); }
  void operator()(const std::vector<double>& numbers) {
    builder.setNumbers(kj::arrayPtr(numbers.data(), numbers.size()));
  }
  void operator()(const std::string& text) {
    builder.setText(TextOf(ToUtf8(text, kMostObservedBytes)));
  }
  void operator()(const Blob& blob) { WriteBlob(blob, builder.initBlob()); }
};

ObservedValue ReadValue(schema::ObservedValue::Reader reader) {
  switch (reader.which()) {
    case schema::ObservedValue::NUMBER: return ReadFinite(reader.getNumber(), "number");
    case schema::ObservedValue::NUMBERS: {
      const auto list =
          Bounded(reader.getNumbers(), kMostObservedBytes / sizeof(double), "numbers");
      for (const double number : list) ReadFinite(number, "numbers");
      return VectorOf<double>(list);
    }
    case schema::ObservedValue::TEXT: return ReadText(reader.getText(), kMostObservedBytes, "text");
    case schema::ObservedValue::BLOB: return ReadBlob(reader.getBlob());
  }
  RefuseUnsupported("an observed value is of a kind that this version does not know");
}

}  // namespace

void WriteObservedValues(const Observed& observed,
                         capnp::List<schema::ObservedValue>::Builder list) {
  LF_CHECK(observed.values.size() <= kMostObservedValues, "{} values", observed.values.size());
  LF_CHECK(BytesOf(observed) <= kMostObservedBytes, "{} bytes observed", BytesOf(observed));
  std::uint32_t next = 0;
  for (const auto& [name, value] : observed.values) {
    auto entry = list[next++];
    entry.setName(TextOf(ToUtf8(name, kMostObservedNameBytes)));
    std::visit(ValueWriter{entry}, value);
  }
}

Observed ReadObservedValues(capnp::List<schema::ObservedValue>::Reader list) {
  Observed observed;
  for (const auto entry : Bounded(list, kMostObservedValues, "values")) {
    std::string name = ReadText(entry.getName(), kMostObservedNameBytes, "name");
    const auto [place, is_new] = observed.values.emplace(std::move(name), ReadValue(entry));
    if (!is_new) RefuseMalformed(fmt::format("two observed values are called '{}'", place->first));
  }
  if (const std::size_t bytes = BytesOf(observed); bytes > kMostObservedBytes) {
    RefuseMalformed(fmt::format("{} bytes were observed; at most {}", bytes, kMostObservedBytes));
  }
  return observed;
}

}  // namespace loopfleet::wire
