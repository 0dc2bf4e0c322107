// Bytes as the URI of a benchmark: a typed rejection, or a program within the limits.

#include <string>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/program/limits.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "tests/fuzz/fuzz_target.h"

namespace lt = loopfleet::looptree;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const lt::BenchmarkUri uri{std::string(reinterpret_cast<const char*>(data), size)};
  const auto benchmark = lt::OpenBenchmark(uri);
  if (!benchmark) {
    const std::string& message = benchmark.error().message;
    LF_CHECK(!message.empty() && message.size() < 1000, "its message");
    for (std::size_t i = 0; i < message.size();) {
      const std::size_t length = loopfleet::CharacterLength(message, i);
      LF_CHECK(length > 0, "its message is no UTF-8");
      const bool is_c1 =
          length == 2 && message[i] == '\xc2' && static_cast<unsigned char>(message[i + 1]) < 0xa0;
      LF_CHECK(!is_c1 && (length > 1 || (message[i] >= ' ' && message[i] <= '~')),
               "its message has controls");
      i += length;
    }
    return 0;
  }
  const lt::Limits limits;
  const lt::LoopTree& start = benchmark->start;
  LF_CHECK(lt::FlopCount(start.program()) <= limits.flop_count, "flop");
  LF_CHECK(lt::TensorBytes(start.program()) + start.ScratchBytes() <= limits.footprint_bytes,
           "footprint");
  const auto parsed = lt::ParseIr(lt::IrTextOf(start));
  LF_CHECK(parsed.has_value(), "its program is refused: {}", parsed.error().message);
  LF_CHECK(lt::KeyOf(*parsed) == lt::KeyOf(start), "the program sent as text has another key");
  // The last byte of the input chooses the actions.
  const lt::Action simple[] = {lt::ToggleMode{}, lt::Up{}, lt::Down{}, lt::ToggleThread{}};
  const lt::Action agent[] = {lt::Down{}, lt::Split{2}, lt::SwapDown{}, lt::Merge{}};
  const bool is_simple = benchmark->dialect == lt::Dialect::kSimple;
  std::vector<lt::Action> actions;
  for (int i = 0; i < 8; ++i) {
    const unsigned choice = (data[size - 1] >> (i % 4 * 2) & 3U) ^ (i / 4);
    actions.push_back(is_simple ? simple[choice] : agent[choice]);
  }
  const auto replayed = lt::Replay(uri, actions, {.on_illegal = lt::OnIllegal::kSkip});
  LF_CHECK(replayed.has_value(), "{}", replayed.error().message);
  return 0;
}
