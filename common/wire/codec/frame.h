#pragma once
// Internal to the codec. Frames and Cap'n Proto messages: one frame is one whole message.
//
// Readers of foreign bytes report errors by throwing, as Cap'n Proto itself does. Only DecodeFrame
// catches, so no exception leaves the codec.

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/job/failure.h"

namespace loopfleet::wire {

// Thrown by readers, caught by DecodeFrame.
struct Refusal {
  Failure failure;
};
[[noreturn]] void RefuseMalformed(std::string message);
[[noreturn]] void RefuseUnsupported(std::string message);

// The words of a frame, in place or as an aligned copy held by `copy`. Refuses a size that no
// message has.
kj::ArrayPtr<const capnp::word> AlignedWords(std::string_view frame, kj::Array<capnp::word>& copy);
// Zeroed memory for the message that this thread builds: one at a time, and each leaves it zeroed.
// A fresh megabyte for each message would cost 250 page faults, more than filling it.
kj::ArrayPtr<capnp::word> MessageScratch();
capnp::ReaderOptions BoundsFor(std::size_t frame_words);
Failure FailureOf(const kj::Exception& exception);
std::string Serialize(capnp::MessageBuilder& builder);

// Encodes the message that `fill(Root::Builder)` fills in.
template <class Root, class Fill>
std::string EncodeFrame(Fill&& fill) {
  capnp::MallocMessageBuilder builder(MessageScratch());
  fill(builder.initRoot<Root>());
  return Serialize(builder);
}

// Decodes a frame with `read(Root::Reader)`. An error says why the frame was refused.
template <class Root, class Read>
auto DecodeFrame(std::string_view frame, Read&& read)
    -> std::expected<std::invoke_result_t<Read&, typename Root::Reader>, Failure> {
  try {
    kj::Array<capnp::word> copy;
    const kj::ArrayPtr<const capnp::word> words = AlignedWords(frame, copy);
    capnp::FlatArrayMessageReader reader(words, BoundsFor(words.size()));
    if (reader.getEnd() != words.end()) RefuseMalformed("bytes follow the end of the message");
    return read(reader.getRoot<Root>());
  } catch (const Refusal& refusal) {
    return std::unexpected(refusal.failure);
  } catch (const kj::Exception& exception) {
    return std::unexpected(FailureOf(exception));
  }
}

}  // namespace loopfleet::wire
