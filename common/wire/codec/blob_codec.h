#pragma once
// Internal to the codec. Blobs: programs' bitcode and observed values. Readers throw Refusal
// (frame.h).

#include <string>

#include "common/job/observed.h"
#include "common/wire/message.h"
#include "schema/client.capnp.h"
#include "schema/worker.capnp.h"

namespace loopfleet::wire {

void WriteBlob(const Blob& blob, schema::Blob::Builder builder);
Blob ReadBlob(schema::Blob::Reader reader);

void WriteBlobPiece(const BlobPiece& piece, schema::BlobPiece::Builder builder);
BlobPiece ReadBlobPiece(schema::BlobPiece::Reader reader);
BlobPiece ReadPutBlob(schema::BlobPiece::Reader reader);  // to the coordinator: it has bytes

void WriteBlobWanted(const BlobWanted& wanted, schema::BlobWanted::Builder builder);
BlobWanted ReadBlobWanted(schema::BlobWanted::Reader reader);

void WriteWorkerBlobHeld(const WorkerBlobHeld& held, schema::WorkerBlobHeld::Builder builder);
WorkerBlobHeld ReadWorkerBlobHeld(schema::WorkerBlobHeld::Reader reader);

}  // namespace loopfleet::wire
