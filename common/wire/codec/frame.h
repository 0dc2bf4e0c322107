#pragma once
// Internal to the codec. Frames and Cap'n Proto messages: one frame is one message, whole.
//
// Readers of foreign bytes report what is wrong by throwing, as Cap'n Proto itself does;
// DecodeFrame is the only place that catches, so nothing is ever thrown out of the codec.

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

// A frame's words where they lie, or an aligned copy, which `copy` holds; refuses what cannot be a
// message by its size.
kj::ArrayPtr<const capnp::word> AlignedWords(std::string_view frame, kj::Array<capnp::word>& copy);
// Zeroed memory for a message that this thread builds: one message at a time, which leaves it
// zeroed. A fresh megabyte for each would cost 250 page faults, which is more than filling it.
kj::ArrayPtr<capnp::word> MessageScratch();
capnp::ReaderOptions BoundsFor(std::size_t frame_words);
Failure FailureOf(const kj::Exception& exception);
std::string Serialize(capnp::MessageBuilder& builder);

// The message that `fill(Root::Builder)` makes.
template <class Root, class Fill>
std::string EncodeFrame(Fill&& fill) {
  capnp::MallocMessageBuilder builder(MessageScratch());
  fill(builder.initRoot<Root>());
  return Serialize(builder);
}

// What `read(Root::Reader)` makes of the frame, or why it was refused.
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
