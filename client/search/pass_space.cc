#include "client/search/pass_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <variant>

#include "common/base/content_key.h"
#include "common/llvm_passes/pass_action.h"
#include "common/llvm_passes/pass_sequence.h"
#include "common/llvm_passes/program_uri.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kMostPasses = 100;
constexpr std::size_t kPassesOfAStep = 4;  // of a random walk

}  // namespace

Result<std::shared_ptr<const PassSpace>> PassSpace::Open(const looptree::Source& source) {
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&source);
  if (uri == nullptr) return Fail(ErrorKind::kInvalid, "passes run over programs, not loop trees");
  LF_TRY(const passes::ProgramUri program, passes::ParseProgramUri(uri->text));
  return std::shared_ptr<const PassSpace>(new PassSpace(source, passes::ProgramKey(program)));
}

PassSpace::PassSpace(looptree::Source source, std::string program)
    : SearchSpace(std::move(source)), program_(std::move(program)) {
  for (const passes::PassAction& action : passes::ActionsOf(passes::ActionSpace::kDistinct)) {
    flags_.emplace_back(action.flag);
  }
}

Candidate PassSpace::Make(std::vector<std::string> passes) const {
  if (passes.size() > kMostPasses) passes.resize(kMostPasses);
  Candidate candidate;
  candidate.key = ContentKey::Of(fmt::format("{}\n{}", program_, fmt::join(passes, "\n")));
  candidate.passes = std::move(passes);
  return candidate;
}

Result<Candidate> PassSpace::FromPasses(std::vector<std::string> passes) const {
  if (const auto texts = passes::CanonicalTexts(passes); !texts) {
    return Fail(ErrorKind::kInvalid, texts.error().message);
  }
  if (passes.size() > kMostPasses) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} passes; a search takes at most {}", passes.size(), kMostPasses));
  }
  return Make(std::move(passes));
}

const std::string& PassSpace::Draw(SplitMix64& random) const {
  return flags_[random.Below(flags_.size())];
}

Candidate PassSpace::Start() const { return Make({}); }

std::vector<Candidate> PassSpace::Neighbours(const Candidate& from) const {
  std::vector<Candidate> neighbours;
  if (from.passes.size() >= kMostPasses) return neighbours;
  for (const std::string& flag : flags_) {
    std::vector<std::string> passes = from.passes;
    passes.push_back(flag);
    neighbours.push_back(Make(std::move(passes)));
  }
  return neighbours;
}

Candidate PassSpace::RandomStep(const Candidate& from, SplitMix64& random) const {
  std::vector<std::string> passes = from.passes;
  passes.push_back(Draw(random));
  return Make(std::move(passes));
}

Candidate PassSpace::RandomWalk(std::size_t most, SplitMix64& random) const {
  std::vector<std::string> passes;
  for (std::size_t left = 1 + random.Below(most * kPassesOfAStep); left > 0; --left) {
    passes.push_back(Draw(random));
  }
  return Make(std::move(passes));
}

Candidate PassSpace::Mutate(const Candidate& from, SplitMix64& random) const {
  std::vector<std::string> passes = from.passes;
  for (std::uint64_t left = 1 + random.Below(3); left > 0; --left) {
    const std::uint64_t kind = passes.empty() ? 0 : random.Below(8);
    if (kind < 2) {
      passes.push_back(Draw(random));
      continue;
    }
    const auto place = passes.begin() + static_cast<std::ptrdiff_t>(random.Below(passes.size()));
    if (kind < 4) {
      passes.erase(place);
    } else if (kind < 6) {
      *place = Draw(random);
    } else {
      passes.insert(place, Draw(random));
    }
  }
  return Make(std::move(passes));
}

Candidate PassSpace::Cross(const Candidate& first, const Candidate& last,
                           SplitMix64& random) const {
  const auto end = static_cast<std::ptrdiff_t>(random.Below(first.passes.size() + 1));
  const auto begin = static_cast<std::ptrdiff_t>(random.Below(last.passes.size() + 1));
  std::vector<std::string> passes(first.passes.begin(), first.passes.begin() + end);
  passes.insert(passes.end(), last.passes.begin() + begin, last.passes.end());
  return Make(std::move(passes));
}

}  // namespace loopfleet::client
