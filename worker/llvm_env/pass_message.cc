#include "worker/llvm_env/pass_message.h"

#include "kernel/byte_codec.h"

namespace loopfleet::worker {

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, PrefixTree::Node>& node) {
  archive(node.parent, node.text, node.wanted);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, PrefixTree>& tree) {
  archive(tree.texts, tree.nodes);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, LoadRequest>& load) {
  archive(load.slot, load.bitcode);
  archive.Require([&] { return load.slot < kProgramSlots; });
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, WalkRequest::InPlace>& place) {
  archive(place.program_instructions, place.spent);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, WalkRequest>& walk) {
  archive(walk.slot, walk.baselines, walk.tree, walk.in_place);
  archive.Require([&] { return walk.slot < kProgramSlots; });
}

template <class Archive>
void Fields(Archive& /*archive*/, FieldsOf<Archive, BranchRequest>& /*branch*/) {}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, LoadedReply>& loaded) {
  archive(loaded.module_hash, loaded.instruction_count);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, RefusedReply>& refused) {
  archive(refused.message);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, RecordsReply>& records) {
  archive(records.records, records.instructions_at_end);
}

// The index of the pass is not sent: it follows from the node.
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, PassFailure>& failure) {
  archive.Enum(failure.reason, PassFailure::kLastReason);
  archive(failure.signal, failure.message);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, StepRecord>& step) {
  archive(step.node, step.changed);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, ValueRecord>& value) {
  archive(value.node);
  archive.Enum(value.observation, passes::kLastObservation);
  archive(value.value);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, NoValueRecord>& none) {
  archive(none.node);
  archive.Enum(none.observation, passes::kLastObservation);
  archive(none.failure);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, FailureRecord>& failure) {
  archive(failure.node, failure.failure);
}

std::string Encode(const PassRequest& request) { return EncodeBytes(request); }
std::optional<PassRequest> DecodePassRequest(std::string_view bytes) {
  return DecodeBytes<PassRequest>(bytes);
}
std::string Encode(const PassReply& reply) { return EncodeBytes(reply); }
std::optional<PassReply> DecodePassReply(std::string_view bytes) {
  return DecodeBytes<PassReply>(bytes);
}
std::string Encode(const PassRecord& record) { return EncodeBytes(record); }
std::optional<std::vector<PassRecord>> DecodeRecords(std::string_view bytes) {
  ByteReader reader(bytes);
  std::vector<PassRecord> records;
  while (reader.ok() && !reader.AtEnd()) reader(records.emplace_back());
  if (!reader.ok()) return std::nullopt;
  return records;
}

}  // namespace loopfleet::worker
