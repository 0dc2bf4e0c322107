#pragma once
// PassHeads: processes that each hold the state that an episode has come to, so that the next job
// of the episode runs only what it adds. An environment's step is such a job: all passes so far and
// one more. A head is a fork of the child that holds the program (pass_child.h); it serves this
// program alone, runs passes in place and moves on with them. Whatever goes wrong in one, it is
// gone, and the caller runs the job from the program on: results are the same with and without
// heads. Bounded in number and by the instructions that they hold; the longest unused makes room,
// if it has not been used lately. A caller without work drops them all. One thread.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/content_key.h"
#include "kernel/channel.h"
#include "worker/llvm_env/episode.h"
#include "worker/llvm_env/pass_message.h"

namespace loopfleet::worker {

class PassHeads {
 public:
  explicit PassHeads(std::size_t most) : most_(most) {}

  struct Program {
    std::shared_ptr<const std::string> bitcode;
    std::uint8_t slot = 0;  // of the child that holds it
    LoadedReply facts;
    std::map<passes::Observation, passes::ObservationValue> baselines;  // those known
  };
  struct Result {
    EpisodeResult episode;
    LoadedReply program;
  };
  // nullopt: no head holds a prefix of the episode, or it failed.
  std::optional<Result> Run(const std::shared_ptr<const std::string>& bitcode,
                            const Episode& episode, Instant deadline);
  // Makes a head for an episode of one pass, or one of which all but the last pass was seen a short
  // time ago. `holder` leads to the child that holds the program.
  std::optional<Result> RunOnNew(const Program& program, const Episode& episode, Instant deadline,
                                 Channel& holder);
  void Saw(const LoadedReply& program, const Episode& episode);

  void DropAll() { heads_.clear(); }

  std::size_t most() const { return most_; }
  std::size_t size() const { return heads_.size(); }

 private:
  struct Head {
    Channel channel;  // closed: the head ends
    Program program;
    std::vector<std::string> passes;
    std::vector<bool> changed;       // by each of them
    Nanos spent{0};                  // on them
    std::uint64_t instructions = 0;  // that it holds now
    std::uint64_t last_use = 0;
  };

  // If together they hold too much.
  void DropLargest();
  bool MakeRoom(std::uint64_t instructions);
  std::optional<Result> Advance(Head& head, const Episode& episode, Instant deadline);

  const std::size_t most_;
  std::vector<Head> heads_;
  std::deque<ContentKey> seen_;  // the last episodes: program and passes
  std::uint64_t uses_ = 0;
};

}  // namespace loopfleet::worker
