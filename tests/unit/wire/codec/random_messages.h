#pragma once
// Messages with every field set at random, equal for equal seeds.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/wire/message.h"

namespace loopfleet::wire {

class RandomMessages {
 public:
  explicit RandomMessages(std::uint64_t seed) : random_(seed) {}

  // `kind` is an index into the variant's alternatives, without UnknownMember.
  ClientRequest Request(std::size_t kind);
  CoordinatorReply Reply(std::size_t kind);
  WorkerMessage Message(std::size_t kind);
  WorkerCommand Command(std::size_t kind);

  Uuid AnUuid();
  JobSpec Spec();
  Observed AnObserved();
  Evaluation AnEvaluation();
  Outcome AnOutcome(BatchId batch);
  WorkerInfo Worker();
  JobExplanation Explanation();
  FleetInfo Fleet();

  std::uint64_t Below(std::uint64_t bound) { return random_.Below(bound); }

 private:
  bool Flip() { return Below(2) == 0; }
  template <class Enum>
  Enum Pick(std::uint64_t count) {
    return static_cast<Enum>(Below(count));
  }
  std::uint32_t Number32() { return static_cast<std::uint32_t>(random_.Next()); }
  std::uint64_t Id() { return random_.Next() | 1; }
  double Real() { return static_cast<double>(Below(1'000'000'000) + 1) / 1024.0; }
  std::string Text(std::size_t max_characters = 24);
  std::vector<std::string> Texts(std::size_t max_count);
  ProtocolVersion Version();
  WallTime Time() { return WallTime(Nanos(static_cast<std::int64_t>(random_.Next() >> 1))); }
  looptree::Action AnAction();
  std::vector<looptree::Action> Actions();
  looptree::Source Source();
  Failure AFailure();
  Measurement AMeasurement();
  HardwareFacts Hardware();
  CompilerFacts Compiler();
  Conditions SomeConditions();
  StageDurations Stages();
  JobId Job() { return {.batch = BatchId{Id()}, .index = Number32()}; }
  BatchInfo Batch();
  JobInfo AJobInfo();
  SubmitJobs Submit();
  OutcomePage Page();
  WorkerHello Hello();
  BlobPiece Piece();
  std::vector<LeaseId> LeaseIds();

  SplitMix64 random_;
};

inline constexpr std::size_t kRequestKinds = std::variant_size_v<ClientMessage> - 1;
inline constexpr std::size_t kReplyKinds = std::variant_size_v<CoordinatorMessage> - 1;
inline constexpr std::size_t kMessageKinds = std::variant_size_v<WorkerMessage> - 1;
inline constexpr std::size_t kCommandKinds = std::variant_size_v<WorkerCommand> - 1;

}  // namespace loopfleet::wire
