#include "worker/llvm_env/pass_heads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "worker/llvm_env/batch_records.h"
#include "worker/llvm_env/prefix_tree.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kSeen = 256;
// Of all heads. An instruction takes some 250 bytes with its operands and names.
constexpr std::uint64_t kMaxInstructions = 1'000'000;
// A head that was used within so many jobs is not given up for another one.
constexpr std::uint64_t kInUse = 64;

Instant Now() { return std::chrono::steady_clock::now(); }

ContentKey KeyOf(const std::string& module_hash, std::span<const std::string> passes) {
  return ContentKey::Of(fmt::format("{}\n{}", module_hash, fmt::join(passes, "\n")));
}

// Whether a head that has come to `start` can observe it all: the steps before are over, and -Oz
// and the like start from the program.
bool CanObserve(const Episode& episode, std::size_t start,
                const std::map<passes::Observation, passes::ObservationValue>& baselines) {
  return std::ranges::all_of(episode.wanted, [&](const Wanted& wanted) {
    if (passes::InfoOf(wanted.observation).baseline != passes::Baseline::kNone) {
      return baselines.contains(wanted.observation);
    }
    return std::ranges::all_of(wanted.steps, [&](std::uint32_t step) { return step >= start; });
  });
}

// What is left of the episode after its first `start` passes.
Episode Rest(const Episode& episode, std::size_t start) {
  Episode rest{
      .passes = {episode.passes.begin() + static_cast<std::ptrdiff_t>(start), episode.passes.end()},
      .wanted = episode.wanted};
  for (Wanted& wanted : rest.wanted) {
    const bool is_baseline = passes::InfoOf(wanted.observation).baseline != passes::Baseline::kNone;
    for (std::uint32_t& step : wanted.steps) {
      step = is_baseline ? 0 : step - static_cast<std::uint32_t>(start);
    }
  }
  return rest;
}

}  // namespace

std::optional<PassHeads::Result> PassHeads::Run(const std::shared_ptr<const std::string>& bitcode,
                                                const Episode& episode, Instant deadline) {
  if (episode.passes.empty()) return std::nullopt;
  ++uses_;
  auto longest = heads_.end();
  for (auto head = heads_.begin(); head != heads_.end(); ++head) {
    const std::shared_ptr<const std::string>& held = head->program.bitcode;
    const std::vector<std::string>& passes = head->passes;
    const bool fits = passes.size() <= episode.passes.size() &&
                      std::equal(passes.begin(), passes.end(), episode.passes.begin()) &&
                      (held == bitcode || *held == *bitcode) &&
                      CanObserve(episode, passes.size(), head->program.baselines);
    if (fits && (longest == heads_.end() || passes.size() > longest->passes.size())) longest = head;
  }
  if (longest == heads_.end()) return std::nullopt;
  auto result = Advance(*longest, episode, deadline);
  if (result) {
    DropLargest();
  } else {
    // No new head tries the same at once.
    const std::span<const std::string> before(episode.passes.data(), episode.passes.size() - 1);
    std::erase(seen_, KeyOf(longest->program.facts.module_hash, before));
    heads_.erase(longest);
  }
  return result;
}

std::optional<PassHeads::Result> PassHeads::RunOnNew(const Program& program, const Episode& episode,
                                                     Instant deadline, Channel& holder) {
  if (episode.passes.empty()) return std::nullopt;
  const std::span<const std::string> before(episode.passes.data(), episode.passes.size() - 1);
  // The first pass of all may begin an environment's episode; a walk forks, too.
  const bool continues = before.empty() || std::ranges::find(seen_, KeyOf(program.facts.module_hash,
                                                                          before)) != seen_.end();
  if (!continues || !CanObserve(episode, 0, program.baselines) ||
      !MakeRoom(program.facts.instruction_count)) {
    return std::nullopt;
  }
  auto ends = Channel::MakePair();
  if (!ends) return std::nullopt;
  const int far_end = ends->second.fd();
  if (!holder.Send(Encode(PassRequest(BranchRequest{})), deadline, {&far_end, 1})) {
    return std::nullopt;
  }
  ends->second = Channel();  // so that the near end is closed when the head ends
  heads_.push_back(
      {.channel = std::move(ends->first), .program = program, .passes = {}, .changed = {}});
  auto result = Advance(heads_.back(), episode, deadline);
  if (result) {
    DropLargest();
  } else {
    heads_.pop_back();
  }
  return result;
}

void PassHeads::Saw(const LoadedReply& program, const Episode& episode) {
  seen_.push_back(KeyOf(program.module_hash, episode.passes));
  if (seen_.size() > kSeen) seen_.pop_front();
}

// Passes can make a program grow in place.
void PassHeads::DropLargest() {
  std::uint64_t held = 0;
  for (const Head& head : heads_) held += head.instructions;
  if (held > kMaxInstructions)
    heads_.erase(std::ranges::max_element(heads_, {}, &Head::instructions));
}

bool PassHeads::MakeRoom(std::uint64_t instructions) {
  if (instructions > kMaxInstructions || most_ == 0) return false;
  for (;;) {
    std::uint64_t held = instructions;
    for (const Head& head : heads_) held += head.instructions;
    if (heads_.size() < most_ && held <= kMaxInstructions) return true;
    const auto oldest = std::ranges::min_element(heads_, {}, &Head::last_use);
    if (oldest->last_use + kInUse > uses_) return false;
    heads_.erase(oldest);
  }
}

std::optional<PassHeads::Result> PassHeads::Advance(Head& head, const Episode& episode,
                                                    Instant deadline) {
  const Episode rest = Rest(episode, head.passes.size());
  PlantedBatch chain = Plant({&rest, 1});
  BatchRecords records(chain.tree.nodes.size(), head.program.baselines);
  const Instant begun = Now();
  const WalkRequest walk{
      .slot = head.program.slot,
      .baselines = 0,
      .tree = std::move(chain.tree),
      .in_place = WalkRequest::InPlace{.program_instructions = head.program.facts.instruction_count,
                                       .spent = head.spent}};
  if (!head.channel.Send(Encode(PassRequest(walk)), deadline)) return std::nullopt;
  for (bool is_over = false; !is_over;) {
    const auto bytes = head.channel.Receive(deadline, kMaxPassMessageBytes);
    const auto reply = bytes ? DecodePassReply(*bytes) : std::nullopt;
    const auto* part = reply ? std::get_if<RecordsReply>(&*reply) : nullptr;
    if (part == nullptr || !records.Add(part->records)) return std::nullopt;
    is_over = part->instructions_at_end.has_value();
    head.instructions = part->instructions_at_end.value_or(head.instructions);
  }
  EpisodeResult result = records.ResultOf(rest, chain.paths[0], std::nullopt);
  if (result.failure) return std::nullopt;  // a walk from the program on tells it with its place
  head.passes = episode.passes;
  head.changed.insert(head.changed.end(), result.changed.begin(), result.changed.end());
  head.spent += Now() - begun;
  head.last_use = uses_;
  result.changed = head.changed;
  auto value = result.values.begin();
  for (const Wanted& wanted : episode.wanted) {
    for (const std::uint32_t step : wanted.steps) (value++)->step = step;
  }
  return Result{.episode = std::move(result), .program = head.program.facts};
}

}  // namespace loopfleet::worker
