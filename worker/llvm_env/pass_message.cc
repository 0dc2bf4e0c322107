#include "worker/llvm_env/pass_message.h"

#include <type_traits>
#include <utility>

#include "kernel/byte_codec.h"

namespace loopfleet::worker {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

constexpr std::uint64_t kMost = kMaxPassMessageBytes;

template <class T>
void PutNumbers(ByteWriter& out, const std::vector<T>& numbers) {
  out.Put(static_cast<std::uint64_t>(numbers.size()));
  for (const T number : numbers) out.Put(number);
}

template <class T>
std::vector<T> GetNumbers(ByteReader& in) {
  std::vector<T> numbers(in.GetCount(kMost));
  for (T& number : numbers) number = in.Get<T>();
  return numbers;
}

void PutValue(ByteWriter& out, const passes::ObservationValue& value) {
  out.Put(static_cast<passes::ValueType>(value.index()));
  std::visit(Overloaded{[&](std::int64_t number) { out.Put(number); },
                        [&](const std::vector<std::int64_t>& numbers) { PutNumbers(out, numbers); },
                        [&](const std::vector<float>& numbers) { PutNumbers(out, numbers); },
                        [&](const std::string& bytes) { out.PutText(bytes); }},
             value);
}

passes::ObservationValue GetValue(ByteReader& in) {
  switch (in.GetEnum(passes::ValueType::kBytes)) {
    case passes::ValueType::kInteger: return in.Get<std::int64_t>();
    case passes::ValueType::kIntegers: return GetNumbers<std::int64_t>(in);
    case passes::ValueType::kFloats: return GetNumbers<float>(in);
    case passes::ValueType::kBytes: return std::string(in.GetText());
  }
  return {};
}

void PutFailure(ByteWriter& out, const PassFailure& failure) {
  out.Put(failure.reason);
  out.Put(failure.signal);
  out.PutText(failure.message);
}

// The index of the pass is not sent: it follows from the node.
PassFailure GetFailure(ByteReader& in) {
  PassFailure failure;
  failure.reason = in.GetEnum(PassFailure::kLastReason);
  failure.signal = in.Get<std::int32_t>();
  failure.message = in.GetText();
  return failure;
}

void PutTree(ByteWriter& out, const PrefixTree& tree) {
  out.Put(static_cast<std::uint64_t>(tree.texts.size()));
  for (const std::string& text : tree.texts) out.PutText(text);
  out.Put(static_cast<std::uint64_t>(tree.nodes.size()));
  for (const PrefixTree::Node& node : tree.nodes) {
    out.Put(node.parent);
    out.Put(node.text);
    out.Put(node.wanted);
  }
}

PrefixTree GetTree(ByteReader& in) {
  PrefixTree tree;
  tree.texts.resize(in.GetCount(kMost));
  for (std::string& text : tree.texts) text = in.GetText();
  tree.nodes.resize(in.GetCount(kMost));
  for (PrefixTree::Node& node : tree.nodes) {
    node.parent = in.Get<std::uint32_t>();
    node.text = in.Get<std::uint32_t>();
    node.wanted = in.Get<std::uint32_t>();
  }
  return tree;
}

enum class RequestTag : std::uint8_t { kLoad, kWalk };
enum class ReplyTag : std::uint8_t { kLoaded, kRefused, kRecords, kEnd };
enum class RecordTag : std::uint8_t { kStep, kValue, kNoValue, kFailure };

PassRecord GetRecord(ByteReader& in) {
  const auto tag = in.GetEnum(RecordTag::kFailure);
  const auto node = in.Get<std::uint32_t>();
  switch (tag) {
    case RecordTag::kStep: return StepRecord{.node = node, .changed = in.Get<std::uint8_t>() != 0};
    case RecordTag::kValue: {
      const auto observation = in.GetEnum(passes::kLastObservation);
      return ValueRecord{.node = node, .observation = observation, .value = GetValue(in)};
    }
    case RecordTag::kNoValue: {
      const auto observation = in.GetEnum(passes::kLastObservation);
      return NoValueRecord{.node = node, .observation = observation, .failure = GetFailure(in)};
    }
    case RecordTag::kFailure: return FailureRecord{.node = node, .failure = GetFailure(in)};
  }
  return {};
}

}  // namespace

std::string Encode(const PassRequest& request) {
  ByteWriter out;
  std::visit(Overloaded{[&](const LoadRequest& load) {
                          out.Put(RequestTag::kLoad);
                          out.Put(load.slot);
                          out.PutText(load.bitcode);
                        },
                        [&](const WalkRequest& walk) {
                          out.Put(RequestTag::kWalk);
                          out.Put(walk.slot);
                          out.Put(walk.baselines);
                          PutTree(out, walk.tree);
                        }},
             request);
  return out.Take();
}

std::optional<PassRequest> DecodePassRequest(std::string_view bytes) {
  ByteReader in(bytes);
  PassRequest request;
  const auto tag = in.GetEnum(RequestTag::kWalk);
  const auto slot = in.Get<std::uint8_t>();
  if (tag == RequestTag::kLoad) {
    request = LoadRequest{.slot = slot, .bitcode = std::string(in.GetText())};
  } else {
    const auto baselines = in.Get<std::uint32_t>();
    request = WalkRequest{.slot = slot, .baselines = baselines, .tree = GetTree(in)};
  }
  if (!in.AtEnd() || slot >= kProgramSlots) return std::nullopt;
  return request;
}

std::string Encode(const PassReply& reply) {
  ByteWriter out;
  std::visit(Overloaded{[&](const LoadedReply& loaded) {
                          out.Put(ReplyTag::kLoaded);
                          out.PutText(loaded.module_hash);
                          out.Put(loaded.instruction_count);
                        },
                        [&](const RefusedReply& refused) {
                          out.Put(ReplyTag::kRefused);
                          out.PutText(refused.message);
                        },
                        [&](const RecordsReply& records) {
                          out.Put(ReplyTag::kRecords);
                          out.PutText(records.records);
                        },
                        [&](const EndReply&) { out.Put(ReplyTag::kEnd); }},
             reply);
  return out.Take();
}

std::optional<PassReply> DecodePassReply(std::string_view bytes) {
  ByteReader in(bytes);
  PassReply reply = EndReply{};
  switch (in.GetEnum(ReplyTag::kEnd)) {
    case ReplyTag::kLoaded: {
      std::string hash(in.GetText());
      reply =
          LoadedReply{.module_hash = std::move(hash), .instruction_count = in.Get<std::uint64_t>()};
      break;
    }
    case ReplyTag::kRefused: reply = RefusedReply{.message = std::string(in.GetText())}; break;
    case ReplyTag::kRecords: reply = RecordsReply{.records = std::string(in.GetText())}; break;
    case ReplyTag::kEnd: break;
  }
  if (!in.AtEnd()) return std::nullopt;
  return reply;
}

std::string Encode(const PassRecord& record) {
  ByteWriter out;
  std::visit(Overloaded{[&](const StepRecord& step) {
                          out.Put(RecordTag::kStep);
                          out.Put(step.node);
                          out.Put(static_cast<std::uint8_t>(step.changed ? 1 : 0));
                        },
                        [&](const ValueRecord& value) {
                          out.Put(RecordTag::kValue);
                          out.Put(value.node);
                          out.Put(value.observation);
                          PutValue(out, value.value);
                        },
                        [&](const NoValueRecord& none) {
                          out.Put(RecordTag::kNoValue);
                          out.Put(none.node);
                          out.Put(none.observation);
                          PutFailure(out, none.failure);
                        },
                        [&](const FailureRecord& failure) {
                          out.Put(RecordTag::kFailure);
                          out.Put(failure.node);
                          PutFailure(out, failure.failure);
                        }},
             record);
  return out.Take();
}

std::optional<std::vector<PassRecord>> DecodeRecords(std::string_view bytes) {
  ByteReader in(bytes);
  std::vector<PassRecord> records;
  while (in.ok() && !in.AtEnd()) records.push_back(GetRecord(in));
  if (!in.ok()) return std::nullopt;
  return records;
}

}  // namespace loopfleet::worker
