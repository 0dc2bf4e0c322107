#include "bench/corpus/corpus.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <set>
#include <span>

#include "client/job_line.h"
#include "common/base/check.h"
#include "common/base/random.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/tree/key.h"

namespace loopfleet::bench {
namespace {

using looptree::Action;

constexpr std::uint64_t kMostDraws = 20'000;

std::vector<Action> ActionsOf(ActionPool pool) {
  std::vector<Action> actions = {looptree::Up{}, looptree::Down{}, looptree::SwapUp{},
                                 looptree::SwapDown{}};
  for (const std::int64_t factor : {2, 4, 8, 16, 32, 64}) {
    actions.emplace_back(looptree::Split{.factor = factor});
  }
  if (pool == ActionPool::kReorder) return actions;
  for (const std::int64_t factor : {5, 128, 256}) {
    actions.emplace_back(looptree::Split{.factor = factor});
  }
  actions.insert(actions.end(), {looptree::Merge{}, looptree::Unroll{}, looptree::Dummy{}});
  return actions;
}

std::vector<Action> LegalOnes(const looptree::AgentWalk& walk, std::span<const Action> all) {
  std::vector<Action> legal;
  for (const Action& action : all) {
    if (walk.IsLegal(action)) legal.push_back(action);
  }
  return legal;
}

}  // namespace

std::vector<JobSpec> DrawWalks(const CorpusOptions& options) {
  const looptree::Source source = options.ir.empty()
                                      ? looptree::Source(looptree::BenchmarkUri{options.benchmark})
                                      : looptree::Source(looptree::IrText{options.ir});
  const auto benchmark = looptree::OpenBenchmark(source);
  LF_CHECK(benchmark.has_value(), "{}", benchmark.error().message);
  const std::vector<Action> pool = ActionsOf(options.pool);
  SplitMix64 random(options.seed);
  std::set<looptree::TreeKey> seen;
  std::vector<JobSpec> walks;
  for (std::uint64_t drawn = 0; walks.size() < options.walks && drawn < kMostDraws; ++drawn) {
    const auto rules = options.pool == ActionPool::kAgent && drawn % 2 == 1
                           ? looptree::RuleSet::kLoopNest
                           : looptree::RuleSet::kStructural;
    looptree::AgentWalk walk(*benchmark, rules);
    JobSpec spec{.source = source, .rules = rules, .tag = options.tag};
    const std::uint64_t length = 1 + random.Below(options.max_actions);
    while (spec.actions.size() < length) {
      const std::vector<Action> legal = LegalOnes(walk, pool);
      if (legal.empty()) break;
      const Action& action = legal[random.Below(legal.size())];
      // Legal, but beyond a limit of the tree: the walk ends here.
      if (!walk.Apply(action)) break;
      spec.actions.push_back(action);
    }
    if (seen.insert(looptree::KeyOf(walk.tree())).second) walks.push_back(std::move(spec));
  }
  return walks;
}

Result<std::vector<JobSpec>> ReadCorpus(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) return Fail(ErrorKind::kNotFound, fmt::format("cannot read {}", file.native()));
  std::vector<JobSpec> jobs;
  for (std::string line; std::getline(stream, line);) {
    auto spec = client::ParseJobLine(line);
    if (!spec) {
      return Fail(ErrorKind::kInvalid, fmt::format("{}:{}: {}", file.native(), jobs.size() + 1,
                                                   spec.error().failure.message));
    }
    jobs.push_back(*std::move(spec));
  }
  return jobs;
}

}  // namespace loopfleet::bench
