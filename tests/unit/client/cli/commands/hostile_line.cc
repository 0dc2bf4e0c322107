#include "tests/unit/client/cli/commands/hostile_line.h"

#include <fmt/format.h>

#include <iterator>

namespace loopfleet::client {
namespace {

constexpr std::size_t kLimitBytes = 1 << 20;  // the limit of a line

// Escapes as JSON requires, except that invalid UTF-8 stays, to be refused.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '\n') {
      quoted += "\\n";
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string LineOf(std::string_view source_key, std::string_view source, std::string_view actions,
                   std::string_view more = "") {
  return fmt::format("{{\"{}\": {}, \"actions\": [{}]{}}}", source_key, Quoted(source), actions,
                     more);
}

std::string Repeated(std::string_view part, std::size_t times) {
  std::string text;
  text.reserve(part.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

}  // namespace

HostileLines::Line HostileLines::Next() {
  // A long line takes as long to make as a thousand others, so it is rarer.
  if (random_.Below(500) == 0) return LongLine();
  switch (random_.Below(22)) {
    case 0:
    case 1:
    case 2: return Sizes();
    case 3:
    case 4:
    case 5: return SplitStorm();
    case 6:
    case 7: return OffTheTree();
    case 8:
    case 9: return SimpleStorm();
    case 10:
    case 11: return BadNames();
    case 12: return TooManyActions();
    case 13: return DeepNesting();
    case 14:
    case 15:
    case 16: return MutatedProgram();
    case 17:
    case 18: return OverflowingView();
    case 19: return LargeProgram();
    default: return Options();
  }
}

std::string HostileLines::Number() {
  constexpr std::string_view kEdges[] = {"0",
                                         "1",
                                         "-1",
                                         "2",
                                         "2147483647",
                                         "2147483648",
                                         "4294967295",
                                         "4294967296",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         "-9223372036854775808",
                                         "18446744073709551616",
                                         "8388607",
                                         "8388608",
                                         "007",
                                         "+5",
                                         "1_000",
                                         "1e3",
                                         "0x10",
                                         " 1",
                                         "",
                                         "3.5",
                                         "99999999999999999999999999999999"};
  constexpr std::string_view kPrimes[] = {"3",    "7",     "13",      "97",        "251",
                                          "1021", "65537", "8388593", "2147483629"};
  switch (random_.Below(4)) {
    case 0: return std::string(OneOf(kPrimes));
    case 1: return fmt::format("{}", random_.Below(300));
    case 2: return fmt::format("{}", random_.Next() >> random_.Below(64));
    default: return std::string(OneOf(kEdges));
  }
}

std::string HostileLines::Name() {
  constexpr std::string_view kNames[] = {
      "up",      "down",      "swap_up",    "swap_down",   "merge",         "unroll",
      "undo",    "vectorize", "dummy",      "undo_action", "toggle_thread", "toggle_mode",
      "split",   "split_2",   "split_3",    "split_4",     "split_7",       "split_16",
      "split_0", "split_1",   "split_-1",   "split_1024",  "splt_4",        "",
      "UP",      " up",       "down\\u0000"};
  constexpr std::string_view kGood[] = {"up",      "down",  "swap_up", "swap_down", "split_2",
                                        "split_5", "merge", "unroll",  "vectorize", "undo"};
  switch (random_.Below(16)) {
    case 0: return "split_" + Number();
    case 1: return std::string(OneOf(kNames));
    default: return std::string(OneOf(kGood));
  }
}

std::string HostileLines::Uri() {
  constexpr std::string_view kPlain[] = {
      "benchmark://mm-v0/mm64_64_64", "benchmark://mm-v0/mm8191_127_13",
      "benchmark://mm64_256_16_range-v0/mm256_256_256",
      "benchmark://conv-v0/conv1_8_16_16__8_8_3_3", "benchmark://loop_tool-cpu-v0/8388607"};
  switch (random_.Below(7)) {
    case 0: return fmt::format("benchmark://mm-v0/mm{}_{}_{}", Number(), Number(), Number());
    case 1: return fmt::format("benchmark://loop_tool-cpu-v0/{}", Number());
    case 2: return fmt::format("benchmark://loop_tool-cuda-v0/{}", Number());
    case 3: return fmt::format("benchmark://mm64_256_16_range-v0/mm{}_64_{}", Number(), Number());
    case 4:
      return fmt::format("benchmark://conv-v0/conv{}_{}_{}_{}__{}_{}_{}_{}", Number(), Number(),
                         Number(), Number(), Number(), Number(), Number(), Number());
    case 5: return fmt::format("benchmark://{}/{}", Garbage(random_.Below(20)), Number());
    default: return std::string(OneOf(kPlain));
  }
}

std::string HostileLines::Actions(std::size_t most) {
  std::string actions;
  const std::size_t count = random_.Below(most + 1);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) actions += ',';
    actions += '"' + Name() + '"';
  }
  return actions;
}

std::string HostileLines::Garbage(std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) {
    char byte = static_cast<char>(random_.Below(256));
    if (byte == '\n' || byte == '"' || byte == '\\') byte = '?';
    bytes += byte;
  }
  return bytes;
}

HostileLines::Line HostileLines::Sizes() { return {"sizes", LineOf("uri", Uri(), Actions(6))}; }

HostileLines::Line HostileLines::SplitStorm() {
  constexpr std::string_view kUris[] = {
      "benchmark://mm-v0/mm8191_64_64", "benchmark://mm-v0/mm65536_16_16",
      "benchmark://mm-v0/mm131071_3_5", "benchmark://conv-v0/conv1_64_34_34__64_64_3_3",
      "benchmark://mm-v0/mm4096_4096_4096"};
  constexpr std::string_view kStorm[] = {
      "\"split_2\"", "\"split_2\"", "\"split_2\"", "\"split_3\"",   "\"split_1\"",   "\"split_7\"",
      "\"down\"",    "\"up\"",      "\"merge\"",   "\"swap_down\"", "\"vectorize\"", "\"unroll\""};
  std::string actions;
  const std::size_t count = random_.Below(1024);
  const bool only_splits = random_.Below(3) == 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) actions += ',';
    actions += only_splits && i < 64 ? "\"split_2\"" : OneOf(kStorm);
  }
  // split_1 is not a valid action and would usually end the walk at once.
  if (random_.Below(10) != 0) {
    for (std::size_t at = 0; (at = actions.find("split_1\"", at)) != std::string::npos;) {
      actions.replace(at, 8, "split_5\"");
    }
  }
  return {"split storm", LineOf("uri", OneOf(kUris), actions)};
}

HostileLines::Line HostileLines::OffTheTree() {
  constexpr std::string_view kMoves[] = {"\"up\"",        "\"down\"",  "\"swap_up\"",
                                         "\"swap_down\"", "\"merge\"", "\"undo\""};
  constexpr std::string_view kRules[] = {"", ", \"rules\": \"loop_nest\"",
                                         ", \"features\": \"agent58\"",
                                         ", \"merge_all_first\": true"};
  std::string actions = std::string(OneOf(kMoves));
  for (std::size_t i = random_.Below(500); i > 0; --i) actions += fmt::format(",{}", OneOf(kMoves));
  return {"off the tree", LineOf("uri", "benchmark://mm-v0/mm64_64_64", actions, OneOf(kRules))};
}

HostileLines::Line HostileLines::SimpleStorm() {
  constexpr std::string_view kActions[] = {"\"toggle_mode\"",   "\"up\"",   "\"up\"", "\"down\"",
                                           "\"toggle_thread\"", "\"split\""};
  constexpr std::string_view kUris[] = {
      "benchmark://loop_tool-cpu-v0/1", "benchmark://loop_tool-cpu-v0/8388607",
      "benchmark://loop_tool-cuda-v0/8388593", "benchmark://loop_tool-cpu-v0/97"};
  std::string actions = std::string(OneOf(kActions));
  for (std::size_t i = random_.Below(1023); i > 0; --i) {
    actions += fmt::format(",{}", OneOf(kActions));
  }
  return {"simple storm", LineOf("uri", OneOf(kUris), actions)};
}

HostileLines::Line HostileLines::BadNames() {
  switch (random_.Below(4)) {
    case 0:
      return {"bad names",
              LineOf("uri", "benchmark://mm-v0/mm8_8_8", '"' + Garbage(random_.Below(200)) + '"')};
    case 1: return {"bad names", LineOf(Garbage(random_.Below(40)), "x", "")};
    case 2: return {"bad names", LineOf("uri", Garbage(random_.Below(300)), "")};
    default:
      return {"bad names",
              LineOf("uri", "benchmark://mm-v0/mm8_8_8", Actions(4),
                     fmt::format(", \"observations\": [\"{}\"]", Garbage(random_.Below(40))))};
  }
}

HostileLines::Line HostileLines::TooManyActions() {
  constexpr std::string_view kOne[] = {"\"down\",", "\"vectorize\",", "\"unroll\",", "\"undo\",",
                                       "\"split_2\",\"merge\","};
  std::string actions = Repeated(OneOf(kOne), 1024 + random_.Below(4000));
  actions += "\"up\"";
  return {"too many actions", LineOf("uri", "benchmark://mm-v0/mm64_64_64", actions)};
}

HostileLines::Line HostileLines::DeepNesting() {
  const std::size_t depth = random_.Below(3000);
  const std::string_view open[] = {"[", "{\"a\":", "[{\"a\":[", "{\"actions\":["};
  std::string text = Repeated(OneOf(open), depth);
  if (random_.Below(2) == 0) text += Repeated("]", depth);
  if (random_.Below(2) == 0) text = LineOf("uri", "benchmark://mm-v0/mm8_8_8", text);
  return {"deep nesting", std::move(text)};
}

// A matrix product, a window over a tensor or a chain, with some of its numbers and bytes changed.
std::string HostileLines::Program() {
  constexpr std::string_view kPrograms[] = {
      "v:m\nv:k\nv:n\nn:2::0,1,:::0:::::\nn:2::1,2,:::0:::::\n"
      "n:7:0,1,:0,1,2,:::0:0;64;0,1;64;0,2;64;0,::,,,::\n"
      "n:5:2,:0,2,:::0:0;64;0,1;64;0,2;64;0,::,,,::\nn:1:3,:0,2,:::0:0;64;0,2;64;0,::,,::\n"
      "i:0,1,\no:4,\n",
      "v:i\nv:o\nn:2::0,:::0:::::\n"
      "n:3:0,:1,:0|s|i|;3|f|0,|;=0|v|8|;/0|s|o|;3|f|3,|;=0|v|4|;/0|r|0|;=0|r|3|;/:0=0,3=1,"
      ":0:::::\nn:1:1,:1,:::0:1;4;0,::,::\ni:0,\no:2,\n",
      "v:m\nv:n\nv:k\nn:2::0,1,2,:::0:::::\n"
      "n:14:0,:0,1,2,:::0:0;2;0,1;4;0,2;3;0,::,unroll,,::\n"
      "n:15:1,:0,1,2,:::0:0;2;0,1;4;0,2;3;0,::,,,::\n"
      "n:1:2,:0,1,2,:::0:0;2;0,1;4;0,2;3;0,::,,,::\ni:0,\no:3,\n"};
  std::string text(OneOf(kPrograms));
  constexpr std::string_view kDigits = "0123456789";
  for (std::uint64_t i = random_.Below(4); i > 0; --i) {
    const std::size_t from = random_.Below(text.size());
    const std::size_t begin = text.find_first_of(kDigits, from);
    if (begin == std::string::npos) continue;
    const std::size_t end = text.find_first_not_of(kDigits, begin);
    text.replace(begin, end - begin, Number());
  }
  return text;
}

HostileLines::Line HostileLines::MutatedProgram() {
  std::string program = Program();
  if (random_.Below(3) == 0 && !program.empty()) {
    constexpr std::string_view kBytes = "0123456789,;:|/=-vnio\n\xff";
    for (std::uint64_t i = random_.Below(4); i > 0; --i) {
      program[random_.Below(program.size())] = kBytes[random_.Below(kBytes.size())];
    }
  }
  return {"mutated program", LineOf("ir", program, Actions(20))};
}

// Symbols, then sums and products of earlier entries and of large numbers.
std::string HostileLines::Expression(std::size_t& entries) {
  std::string text;
  for (std::uint64_t i = random_.Below(40) + 1; i > 0; --i) {
    switch (random_.Below(5)) {
      case 0: fmt::format_to(std::back_inserter(text), "0|v|{}|;", Number()); break;
      case 1:
        fmt::format_to(std::back_inserter(text), "0|r|{}|;", random_.Below(entries + 1));
        break;
      default:
        fmt::format_to(std::back_inserter(text), "{}|f|{},{},|;", random_.Below(8),
                       random_.Below(entries), random_.Below(entries));
    }
    ++entries;
  }
  return text;
}

std::string HostileLines::View() {
  std::size_t entries = 6;
  std::string text = "0|s|i|;3|f|0,|;=0|v|" + Number() + "|;/0|s|o|;3|f|3,|;=0|v|4|;/";
  for (std::uint64_t i = random_.Below(8); i > 0; --i) {
    const std::string left = Expression(entries);
    text += left + "=" + Expression(entries) + "/";
  }
  fmt::format_to(std::back_inserter(text), "0|r|0|;={}/", Expression(++entries));
  return text;
}

HostileLines::Line HostileLines::OverflowingView() {
  const std::string program = "v:i\nv:o\nn:2::0,:::0:::::\nn:3:0,:1,:" + View() +
                              ":0=0,3=1,:0:::::\nn:1:1,:1,:::0:1;4;0,::,::\ni:0,\no:2,\n";
  return {"overflowing view", LineOf("ir", program, Actions(10))};
}

// Up to the limits: many operations under many loops, then a walk whose every step changes them
// all.
std::string HostileLines::WideProgram() {
  const std::size_t loops = random_.Below(34);
  const std::size_t operations = random_.Below(random_.Below(20) == 0 ? 260 : 40) + 1;
  const std::string order = Repeated("0;2;0,", loops);
  const std::string commas = Repeated(",", loops);
  std::string text = "v:m\nn:2::0,:::0:::::\n";
  for (std::size_t id = 1; id <= operations; ++id) {
    fmt::format_to(std::back_inserter(text), "n:{}:{},:0,:::0:{}::{}::\n", id < operations ? 14 : 1,
                   id - 1, order, commas);
  }
  fmt::format_to(std::back_inserter(text), "i:0,\no:{},\n", operations);
  return text;
}

HostileLines::Line HostileLines::LargeProgram() {
  constexpr std::string_view kWalks[] = {"\"unroll\"", "\"vectorize\"", "\"down\"", "\"merge\"",
                                         "\"down\",\"vectorize\""};
  std::string actions = std::string(OneOf(kWalks));
  for (std::uint64_t i = random_.Below(60); i > 0; --i) {
    actions += fmt::format(",{}", OneOf(kWalks));
  }
  return {"large program", LineOf("ir", WideProgram(), actions,
                                  random_.Below(4) == 0 ? ", \"merge_all_first\": true" : "")};
}

HostileLines::Line HostileLines::LongLine() {
  // A program's text of this many bytes still fits a line; the next ones do not.
  const std::size_t size = kLimitBytes - 4096 + random_.Below(2) * 8192;
  const std::string_view fill[] = {"x",
                                   ":",
                                   ",",
                                   "1,",
                                   "/",
                                   "\\n",
                                   "v:m\\n",
                                   "0|v|1|;",
                                   "0=0,",
                                   "0;1;0,",
                                   "=",
                                   "|",
                                   "n:2::0,:::0:::::\\n",
                                   "9",
                                   "\xff"};
  const std::string_view part = OneOf(fill);
  const std::string filling = Repeated(part, size / part.size());
  switch (random_.Below(8)) {
    case 0: return {"long bytes", filling};
    case 1: return {"long uri", LineOf("uri", "benchmark://mm-v0/mm" + filling, "")};
    case 2: return {"long program", fmt::format("{{\"ir\": \"{}\"}}", filling)};
    case 3: return {"long node", fmt::format("{{\"ir\": \"v:m\\nn:2::{}\"}}", filling)};
    case 4:
      return {"long view",
              fmt::format("{{\"ir\": \"v:i\\nv:o\\nn:2::0,:::0:::::\\nn:3:0,:1,:{}:0=0,:0:::::\\n"
                          "i:0,\\no:1,\\n\"}}",
                          filling)};
    case 5:
      return {"long actions without names",
              LineOf("uri", "benchmark://mm-v0/mm8_8_8", Repeated("\"\",", size / 3) + "\"\"")};
    case 6:
      return {"long actions",
              LineOf("uri", "benchmark://mm-v0/mm8_8_8", Repeated("\"up\",", size / 5) + "\"up\"")};
    default: {
      std::string keys = "{\"uri\": \"x\"";
      for (std::size_t i = 0; keys.size() < size; ++i) {
        fmt::format_to(std::back_inserter(keys), ",\"k{}\":{}", i, i);
      }
      return {"long keys", keys + "}"};
    }
  }
}

HostileLines::Line HostileLines::Options() {
  constexpr std::string_view kOptions[] = {
      ", \"every_step\": true",
      ", \"start_cursor\": ",
      ", \"max_loops\": ",
      ", \"stride_buckets\": ",
      ", \"rules\": \"loop_nest\"",
      ", \"features\": \"agent58\"",
      ", \"merge_all_first\": true",
      ", \"observations\": [\"loops_tensor\", \"ir_graph_networkx\", \"dot_graph\"]",
      ", \"observations\": [\"5_prev_actions_tensor\", \"stride_tensor\"]",
      ", \"action_space\": [\"up\", \"split_9223372036854775807\"]",
      ", \"action_space\": [",
      ", \"every_stepp\": 1"};
  std::string more;
  for (std::uint64_t i = random_.Below(3) + 1; i > 0; --i) {
    const std::string_view option = OneOf(kOptions);
    more += option;
    if (option.ends_with(": ")) more += Number();
    if (option.ends_with("[")) more += Actions(200) + "]";
  }
  return {"options", LineOf("uri", Uri(), Actions(12), more)};
}

}  // namespace loopfleet::client
