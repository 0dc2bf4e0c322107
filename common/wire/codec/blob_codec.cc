#include "common/wire/codec/blob_codec.h"

#include <algorithm>

#include "common/wire/codec/field.h"

namespace loopfleet::wire {
namespace {

// The name becomes that of a file, so nothing else may be in it.
std::string ReadSha256(capnp::Text::Reader text) {
  constexpr std::size_t kDigits = 64;
  std::string name = ReadText(text, kDigits, "the SHA-256 of a program");
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (name.size() != kDigits || !std::ranges::all_of(name, is_digit)) {
    RefuseMalformed("the SHA-256 of a program needs 64 lower-case hexadecimal digits");
  }
  return name;
}

std::uint64_t ReadPlace(std::uint64_t bytes, std::string_view what) {
  if (bytes > kMaxBlobBytes) {
    RefuseMalformed(fmt::format("{} is {} bytes; at most {}", what, bytes, kMaxBlobBytes));
  }
  return bytes;
}

}  // namespace

void WriteBlobPiece(const BlobPiece& piece, schema::BlobPiece::Builder builder) {
  builder.setSha256(TextOf(piece.sha256));
  builder.setTotal(piece.total);
  builder.setOffset(piece.offset);
  builder.setBytes({reinterpret_cast<const kj::byte*>(piece.bytes.data()), piece.bytes.size()});
}

BlobPiece ReadBlobPiece(schema::BlobPiece::Reader reader) {
  BlobPiece piece{.sha256 = ReadSha256(reader.getSha256()),
                  .total = ReadPlace(reader.getTotal(), "a program"),
                  .offset = ReadPlace(reader.getOffset(), "the offset of a piece"),
                  .bytes = {}};
  const auto bytes = reader.getBytes();
  if (bytes.size() > kMaxBlobPieceBytes) {
    RefuseMalformed(
        fmt::format("a piece has {} bytes; at most {}", bytes.size(), kMaxBlobPieceBytes));
  }
  if (piece.offset + bytes.size() > piece.total) {
    RefuseMalformed(fmt::format("a piece of {} bytes at {} is beyond the program's {} bytes",
                                bytes.size(), piece.offset, piece.total));
  }
  piece.bytes.assign(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  return piece;
}

void WriteBlobWanted(const BlobWanted& wanted, schema::BlobWanted::Builder builder) {
  builder.setSha256(TextOf(wanted.sha256));
  builder.setOffset(wanted.offset);
}

BlobWanted ReadBlobWanted(schema::BlobWanted::Reader reader) {
  return {.sha256 = ReadSha256(reader.getSha256()),
          .offset = ReadPlace(reader.getOffset(), "the offset of a piece")};
}

}  // namespace loopfleet::wire
