#include "common/wire/codec/frame.h"

#include <fmt/format.h>
#include <kj/io.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "common/base/check.h"
#include "common/wire/bounds.h"
#include "common/wire/codec/utf8.h"

namespace loopfleet::wire {
namespace {

// Deeper than any message of the schema. Pointers that nest further are an attack.
constexpr int kNestingLimit = 24;
// Reading a part once costs its size. Some parts are read twice, and empty lists cost a word.
constexpr std::size_t kTraversalFactor = 2;
constexpr std::size_t kTraversalSlackWords = 1024;

}  // namespace

void RefuseMalformed(std::string message) {
  throw Refusal{Failure{.code = FailureCode::kMalformed, .message = std::move(message)}};
}

void RefuseUnsupported(std::string message) {
  throw Refusal{Failure{.code = FailureCode::kUnsupported, .message = std::move(message)}};
}

kj::ArrayPtr<const capnp::word> AlignedWords(std::string_view frame, kj::Array<capnp::word>& copy) {
  if (frame.empty()) RefuseMalformed("the frame is empty");
  if (frame.size() > kMaxMessageBytes) {
    RefuseMalformed(
        fmt::format("the frame has {} bytes; at most {}", frame.size(), kMaxMessageBytes));
  }
  if (frame.size() % sizeof(capnp::word) != 0) {
    RefuseMalformed(fmt::format("the frame has {} bytes, which is not a multiple of {}: cut short?",
                                frame.size(), sizeof(capnp::word)));
  }
  const std::size_t count = frame.size() / sizeof(capnp::word);
  if (reinterpret_cast<std::uintptr_t>(frame.data()) % alignof(capnp::word) == 0) {
    return kj::arrayPtr(reinterpret_cast<const capnp::word*>(frame.data()), count);
  }
  copy = kj::heapArray<capnp::word>(count);
  std::memcpy(copy.begin(), frame.data(), frame.size());
  return copy;
}

kj::ArrayPtr<capnp::word> MessageScratch() {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  constexpr std::size_t kWords = kMaxMessageBytes / sizeof(capnp::word);
  // calloc: pages that no message has used take no memory.
  thread_local const std::unique_ptr<void, Free> memory(std::calloc(kWords, sizeof(capnp::word)));
  LF_CHECK(memory != nullptr, "no memory for a message");
  return kj::arrayPtr(static_cast<capnp::word*>(memory.get()), kWords);
}

capnp::ReaderOptions BoundsFor(std::size_t frame_words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = kTraversalFactor * frame_words + kTraversalSlackWords;
  options.nestingLimit = kNestingLimit;
  return options;
}

Failure FailureOf(const kj::Exception& exception) {
  const kj::StringPtr description = exception.getDescription();
  return {.code = FailureCode::kMalformed,
          .message = ToUtf8(std::string_view(description.begin(), description.size()),
                            kMaxFailureTextBytes)};
}

std::string Serialize(capnp::MessageBuilder& builder) {
  std::string frame;
  frame.resize(capnp::computeSerializedSizeInWords(builder) * sizeof(capnp::word));
  kj::ArrayOutputStream stream(
      kj::arrayPtr(reinterpret_cast<kj::byte*>(frame.data()), frame.size()));
  capnp::writeMessage(stream, builder);
  return frame;
}

}  // namespace loopfleet::wire
