#pragma once
// Internal to the codec. Pieces of programs' bitcode. Readers throw Refusal (frame.h).

#include <string>

#include "common/wire/message.h"
#include "schema/client.capnp.h"
#include "schema/worker.capnp.h"

namespace loopfleet::wire {

void WriteBlobPiece(const BlobPiece& piece, schema::BlobPiece::Builder builder);
BlobPiece ReadBlobPiece(schema::BlobPiece::Reader reader);

void WriteBlobWanted(const BlobWanted& wanted, schema::BlobWanted::Builder builder);
BlobWanted ReadBlobWanted(schema::BlobWanted::Reader reader);

}  // namespace loopfleet::wire
