#pragma once
// The private messages between PassProcess and its child.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "worker/llvm_env/episode.h"
#include "worker/llvm_env/prefix_tree.h"

namespace loopfleet::worker {

inline constexpr std::uint8_t kProgramSlots = 4;  // programs that a child holds
inline constexpr std::size_t kMaxPassMessageBytes = std::size_t{128} << 20;

// To the child. Forgets the program that was in the slot.
struct LoadRequest {
  std::uint8_t slot = 0;
  std::string bitcode;
};
// To the child: walk the tree from the program in the slot.
struct WalkRequest {
  std::uint8_t slot = 0;
  std::uint32_t baselines = 0;  // bit k: observation k, after its reference pipeline
  PrefixTree tree;
  // Runs the tree, which is a chain, on the program in the slot itself, which stays where the chain
  // ends; a pass that goes wrong ends the child.
  struct InPlace {
    std::uint64_t program_instructions = 0;  // before any pass
    Nanos spent{0};                          // on the passes until now
  };
  std::optional<InPlace> in_place = {};
};
// To the child, with the descriptor of a channel: a fork of the child, with its programs as they
// are, takes requests from there until that channel is closed. If there is no fork, it is closed at
// once.
struct BranchRequest {};
using PassRequest = std::variant<LoadRequest, WalkRequest, BranchRequest>;
std::string Encode(const PassRequest& request);
std::optional<PassRequest> DecodePassRequest(std::string_view bytes);

// From the child: the answers to a LoadRequest...
struct LoadedReply {
  std::string module_hash;
  std::uint64_t instruction_count = 0;
};
struct RefusedReply {
  std::string message;
};
// ... and to a WalkRequest: records in any number of parts.
struct RecordsReply {
  std::string records;
  // Of the program in the slot, once the walk is over: this part is the last one.
  std::optional<std::uint64_t> instructions_at_end = {};
};
using PassReply = std::variant<LoadedReply, RefusedReply, RecordsReply>;
std::string Encode(const PassReply& reply);
std::optional<PassReply> DecodePassReply(std::string_view bytes);

// What a walk finds out. Records of a node follow those of its parent.
inline constexpr std::uint32_t kBaselineNode = 0xffffffff;  // values of reference pipelines
struct StepRecord {                                         // the pass of this node ended well
  std::uint32_t node = 0;
  bool changed = false;
};
struct ValueRecord {
  std::uint32_t node = 0;
  passes::Observation observation{};
  passes::ObservationValue value;
};
struct NoValueRecord {  // the nodes below are not concerned
  std::uint32_t node = 0;
  passes::Observation observation{};
  PassFailure failure;
};
struct FailureRecord {  // nothing is known of this node and of those below
  std::uint32_t node = 0;
  PassFailure failure;
};
using PassRecord = std::variant<StepRecord, ValueRecord, NoValueRecord, FailureRecord>;
std::string Encode(const PassRecord& record);
// nullopt: junk.
std::optional<std::vector<PassRecord>> DecodeRecords(std::string_view bytes);

}  // namespace loopfleet::worker
