#include "common/wire/codec/column.h"

#include <algorithm>

#include "common/wire/codec/utf8.h"

namespace loopfleet::wire {

capnp::List<std::uint32_t>::Reader ReadOffsets(capnp::List<std::uint32_t>::Reader offsets,
                                               std::uint32_t rows, std::size_t total,
                                               std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    RefuseMalformed(fmt::format("offsets of '{}' {}", name, why));
  };
  if (offsets.size() != rows + 1) refuse("are not one more than the rows");
  if (offsets[0] != 0) refuse("do not start at 0");
  for (std::uint32_t i = 0; i < rows; ++i) {
    if (offsets[i] > offsets[i + 1]) refuse("do not ascend");
  }
  if (offsets[rows] != total) refuse("do not end at the number of values");
  return offsets;
}

void WriteTextColumn(std::span<const std::string* const> texts,
                     schema::TextColumn::Builder builder) {
  std::size_t total = 0;
  for (const std::string* text : texts) total += text->size();
  auto offsets = builder.initOffsets(static_cast<unsigned>(texts.size() + 1));
  auto bytes = builder.initBytes(static_cast<unsigned>(total));
  std::uint32_t offset = 0;
  for (unsigned i = 0; i < texts.size(); ++i) {
    std::copy(texts[i]->begin(), texts[i]->end(), bytes.begin() + offset);
    offset += static_cast<std::uint32_t>(texts[i]->size());
    offsets.set(i + 1, offset);
  }
}

TextRows ReadTextColumn(schema::TextColumn::Reader reader, std::uint32_t rows,
                        std::size_t max_bytes, std::string_view name) {
  const auto bytes = reader.getBytes();
  const auto offsets = ReadOffsets(reader.getOffsets(), rows, bytes.size(), name);
  TextRows texts{.bytes = {reinterpret_cast<const char*>(bytes.begin()), bytes.size()},
                 .offsets = VectorOf<std::uint32_t>(offsets)};
  for (std::uint32_t i = 0; i < rows; ++i) {
    const std::string_view text = texts[i];
    if (text.size() > max_bytes) {
      RefuseMalformed(
          fmt::format("row {} of '{}' has {} bytes; at most {}", i, name, text.size(), max_bytes));
    }
    if (!IsUtf8(text)) RefuseMalformed(fmt::format("row {} of '{}' is not UTF-8", i, name));
  }
  return texts;
}

}  // namespace loopfleet::wire
