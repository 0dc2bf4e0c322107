#include "common/wire/codec/blob_codec.h"

#include "common/base/sha256.h"
#include "common/wire/codec/facts_codec.h"
#include "common/wire/codec/field.h"

namespace loopfleet::wire {
namespace {

std::string ReadSha256(capnp::Text::Reader text) {
  constexpr std::size_t kDigits = 64;
  std::string name = ReadText(text, kDigits, "the SHA-256 of a blob");
  if (!IsSha256(name)) {
    RefuseMalformed("the SHA-256 of a blob needs 64 lower-case hexadecimal digits");
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

void WriteBlob(const Blob& blob, schema::Blob::Builder builder) {
  builder.setSha256(TextOf(blob.sha256));
  builder.setBytes(blob.bytes);
}

Blob ReadBlob(schema::Blob::Reader reader) {
  Blob blob{.sha256 = ReadSha256(reader.getSha256()),
            .bytes = ReadPlace(reader.getBytes(), "a blob")};
  if (blob.bytes == 0) RefuseMalformed("a blob without bytes");
  return blob;
}

void WriteBlobPiece(const BlobPiece& piece, schema::BlobPiece::Builder builder) {
  builder.setSha256(TextOf(piece.sha256));
  builder.setTotal(piece.total);
  builder.setOffset(piece.offset);
  builder.setBytes({reinterpret_cast<const kj::byte*>(piece.bytes.data()), piece.bytes.size()});
}

BlobPiece ReadBlobPiece(schema::BlobPiece::Reader reader) {
  BlobPiece piece{.sha256 = ReadSha256(reader.getSha256()),
                  .total = ReadPlace(reader.getTotal(), "a blob"),
                  .offset = ReadPlace(reader.getOffset(), "the offset of a piece"),
                  .bytes = {}};
  const auto bytes = reader.getBytes();
  if (bytes.size() > kMaxBlobPieceBytes) {
    RefuseMalformed(
        fmt::format("a piece has {} bytes; at most {}", bytes.size(), kMaxBlobPieceBytes));
  }
  if (piece.offset + bytes.size() > piece.total) {
    RefuseMalformed(fmt::format("a piece of {} bytes at {} is beyond the blob's {} bytes",
                                bytes.size(), piece.offset, piece.total));
  }
  piece.bytes.assign(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  return piece;
}

BlobPiece ReadPutBlob(schema::BlobPiece::Reader reader) {
  BlobPiece piece = ReadBlobPiece(reader);
  if (piece.total == 0) RefuseMalformed("a blob without bytes");
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

void WriteWorkerBlobHeld(const WorkerBlobHeld& held, schema::WorkerBlobHeld::Builder builder) {
  builder.setSha256(TextOf(held.sha256));
  builder.setBytes(held.bytes);
  if (held.failure) WriteFailure(*held.failure, builder.initFailure());
}

WorkerBlobHeld ReadWorkerBlobHeld(schema::WorkerBlobHeld::Reader reader) {
  WorkerBlobHeld held{.sha256 = ReadSha256(reader.getSha256()),
                      .bytes = ReadPlace(reader.getBytes(), "what is held of a blob")};
  if (reader.hasFailure()) held.failure = ReadFailure(reader.getFailure());
  return held;
}

}  // namespace loopfleet::wire
