// Hostile bytes: decoding returns a value or a typed refusal, reads only the frame, and stays
// within bounds. (The asan preset makes an outside read a failure.)

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "common/base/random.h"
#include "common/wire/codec/codec.h"
#include "tests/unit/wire/codec/fixed_messages.h"

namespace loopfleet::wire {
namespace {

// Whether a refusal has one of the codes for unreadable frames, and a reason.
bool Typed(const Failure& failure) {
  return (failure.code == FailureCode::kMalformed || failure.code == FailureCode::kUnsupported ||
          failure.code == FailureCode::kLimitActions) &&
         !failure.message.empty() && failure.message.size() <= kMaxFailureTextBytes;
}

template <class Decoded>
testing::AssertionResult HasAnAnswer(const Decoded& decoded) {
  if (decoded.has_value()) return testing::AssertionSuccess();
  if constexpr (requires { decoded.error().failure; }) {
    if (Typed(decoded.error().failure)) return testing::AssertionSuccess();
  } else {
    if (Typed(decoded.error())) return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "a refusal without a reason";
}

// A copy of exactly the frame's size, so that a sanitizer sees a read past its end.
struct ExactCopy {
  explicit ExactCopy(std::string_view frame) : bytes(frame.begin(), frame.end()) {}
  std::string_view view() const { return {bytes.data(), bytes.size()}; }
  std::vector<char> bytes;
};

void DecodeAsAnything(std::string_view frame) {
  const ExactCopy copy(frame);
  EXPECT_TRUE(HasAnAnswer(DecodeClientRequest(copy.view())));
  EXPECT_TRUE(HasAnAnswer(DecodeCoordinatorReply(copy.view())));
  EXPECT_TRUE(HasAnAnswer(DecodeWorkerMessage(copy.view())));
  EXPECT_TRUE(HasAnAnswer(DecodeWorkerCommand(copy.view())));
}

std::vector<std::pair<std::string, std::string>> FixedFrames() {
  std::vector<std::pair<std::string, std::string>> frames;
  const auto add = [&](const auto& messages) {
    for (const auto& [name, message] : messages) frames.emplace_back(name, Encode(message));
  };
  add(FixedRequests());
  add(FixedReplies());
  add(FixedWorkerMessages());
  add(FixedWorkerCommands());
  return frames;
}

TEST(HostileFrame, Truncated) {
  for (const auto& [name, message] : FixedRequests()) {
    const std::string frame = Encode(message);
    for (std::size_t length = 0; length < frame.size(); ++length) {
      const ExactCopy copy(std::string_view(frame).substr(0, length));
      const auto decoded = DecodeClientRequest(copy.view());
      ASSERT_FALSE(decoded.has_value()) << name << " cut to " << length;
      EXPECT_EQ(decoded.error().failure.code, FailureCode::kMalformed);
    }
  }
  for (const auto& [name, message] : FixedReplies()) {
    const std::string frame = Encode(message);
    for (std::size_t length = 0; length < frame.size(); ++length) {
      const ExactCopy copy(std::string_view(frame).substr(0, length));
      const auto decoded = DecodeCoordinatorReply(copy.view());
      ASSERT_FALSE(decoded.has_value()) << name << " cut to " << length;
      EXPECT_EQ(decoded.error().code, FailureCode::kMalformed);
    }
  }
  for (const auto& [name, frame] : FixedFrames()) {
    for (std::size_t length = 0; length < frame.size(); ++length) {
      DecodeAsAnything(std::string_view(frame).substr(0, length));
    }
  }
}

TEST(HostileFrame, TrailingBytes) {
  for (const auto& [name, frame] : FixedFrames()) {
    for (const std::size_t extra : {1u, 4u, 7u, 8u, 4096u}) {
      const std::string longer = frame + std::string(extra, '\0');
      EXPECT_FALSE(DecodeClientRequest(longer).has_value()) << name;
      EXPECT_FALSE(DecodeCoordinatorReply(longer).has_value()) << name;
      EXPECT_FALSE(DecodeWorkerMessage(longer).has_value()) << name;
      EXPECT_FALSE(DecodeWorkerCommand(longer).has_value()) << name;
    }
  }
}

TEST(HostileFrame, EmptyAndTooLong) {
  for (const std::string& frame :
       {std::string(), std::string(8, '\0'), std::string(8, '\xff'),
        std::string(kMaxMessageBytes + 8, '\0'), std::string(kMaxMessageBytes, '\0')}) {
    EXPECT_FALSE(DecodeClientRequest(frame).has_value());
    EXPECT_FALSE(DecodeCoordinatorReply(frame).has_value());
    EXPECT_FALSE(DecodeWorkerMessage(frame).has_value());
    EXPECT_FALSE(DecodeWorkerCommand(frame).has_value());
  }
}

TEST(HostileFrame, EveryBitFlipped) {
  for (const auto& [name, frame] : FixedFrames()) {
    // The first words hold the pointers: every bit there, then every 53rd bit.
    for (std::size_t bit = 0; bit < frame.size() * 8; bit += bit < 512 ? 1 : 53) {
      std::string flipped = frame;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      DecodeAsAnything(flipped);
    }
  }
}

TEST(HostileFrame, ManyBytesChanged) {
  SplitMix64 random(20);
  const auto frames = FixedFrames();
  for (int round = 0; round < 5000; ++round) {
    std::string frame = frames[random.Below(frames.size())].second;
    for (std::uint64_t i = random.Below(16) + 1; i > 0; --i) {
      frame[random.Below(frame.size())] = static_cast<char>(random.Below(256));
    }
    DecodeAsAnything(frame);
  }
}

TEST(HostileFrame, RandomBytes) {
  SplitMix64 random(21);
  for (int round = 0; round < 5000; ++round) {
    std::string frame(random.Below(40) * 8, '\0');
    for (char& byte : frame) byte = static_cast<char>(random.Below(256));
    // Half of the frames get a matching segment table, so that decoding gets further.
    if (frame.size() >= 16 && random.Below(2) == 0) {
      const std::uint32_t table[2] = {0, static_cast<std::uint32_t>(frame.size() / 8 - 1)};
      std::memcpy(frame.data(), table, sizeof table);
    }
    DecodeAsAnything(frame);
  }
}

// A list of empty structures costs its sender nothing, however long it is.
TEST(HostileFrame, AListWithoutContent) {
  const std::uint64_t words[] = {
      0x0000'0005'0000'0000,               // one segment of 5 words
      0x0001'0002'0000'0000,               // the reply: 2 words of data, 1 pointer
      1,                                   // its number
      5,                                   // its union: batches
      0x0000'0007'0000'0001,               // a list of structures, 0 words in all
      (std::uint64_t{1} << 31) - (1 << 2)  // its tag: 2^29 - 1 of them, each of no size
  };
  const std::string_view frame(reinterpret_cast<const char*>(words), sizeof words);
  const auto decoded = DecodeCoordinatorReply(frame);
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().code, FailureCode::kMalformed);
  DecodeAsAnything(frame);
}

// Many jobs whose texts share the same bytes: small on the wire, large in memory. The traversal
// limit stops the decoder.
TEST(HostileFrame, SharedContent) {
  SubmitJobs submit{.request_id = Uuid::Random(), .append_to = {}, .jobs = {}};
  submit.jobs.assign(1000, JobSpec{.source = looptree::BenchmarkUri{"x"}});
  submit.jobs[0].tag = '"' + std::string(59'998, 't') + '"';
  std::string frame = Encode(ClientRequest{.number = 3, .message = submit});
  ASSERT_TRUE(DecodeClientRequest(frame).has_value());

  // Find the tag's pointer in the first job's structure, and point every later job to that text.
  const auto word_at = [&](std::size_t index) {
    std::uint64_t word = 0;
    std::memcpy(&word, frame.data() + index * 8, 8);
    return word;
  };
  const std::uint64_t tag_pointer_kind =
      (std::uint64_t{60'001} << 35) | (std::uint64_t{2} << 32) | 1;
  const std::uint64_t kind_mask = ~std::uint64_t{0} << 32 | 3;
  std::size_t pointer = 0;
  while (pointer < frame.size() / 8 && (word_at(pointer) & kind_mask) != tag_pointer_kind)
    ++pointer;
  ASSERT_LT(pointer, frame.size() / 8);
  const auto offset = static_cast<std::int64_t>(static_cast<std::int32_t>(word_at(pointer)) >> 2);
  const std::int64_t target = static_cast<std::int64_t>(pointer) + 1 + offset;

  // The list's tag word gives the size of one job's structure.
  std::size_t list_tag = pointer;
  const auto is_tag = [&](std::size_t i) { return (word_at(i) & 0xffffffff) == (1000u << 2); };
  while (list_tag > 0 && !is_tag(list_tag)) --list_tag;
  ASSERT_TRUE(is_tag(list_tag));
  const std::size_t job_words = ((word_at(list_tag) >> 32) & 0xffff) + (word_at(list_tag) >> 48);
  for (std::size_t job = 1; job < 1000; ++job) {
    const std::size_t place = pointer + job * job_words;
    const std::int64_t shared_offset = target - static_cast<std::int64_t>(place) - 1;
    const std::uint64_t word = (tag_pointer_kind & ~std::uint64_t{0xffffffff}) |
                               (static_cast<std::uint32_t>(shared_offset << 2) | 1u);
    std::memcpy(frame.data() + place * 8, &word, 8);
  }
  const auto decoded = DecodeClientRequest(frame);
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().failure.code, FailureCode::kMalformed);
  EXPECT_EQ(decoded.error().number, 3u);
}

}  // namespace
}  // namespace loopfleet::wire
