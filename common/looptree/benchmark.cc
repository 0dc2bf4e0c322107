#include "common/looptree/benchmark.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/looptree/dataset_rules.h"
#include "common/looptree/number_text.h"
#include "common/looptree/text.h"

namespace loopfleet::looptree {
namespace {

// The dataset's part of a URI, with the scheme and the slash; and the member's.
struct UriParts {
  std::string dataset;
  std::string_view member;
};

UriParts PartsOf(std::string_view uri) {
  if (uri.starts_with(kScheme)) uri.remove_prefix(kScheme.size());
  const std::size_t end = uri.find('/');
  if (end == std::string_view::npos) return {fmt::format("{}{}/", kScheme, uri), {}};
  return {fmt::format("{}{}", kScheme, uri.substr(0, end + 1)), uri.substr(end + 1)};
}

// A URI whose dataset is misspelt: the nearest dataset, with the member where it is one of that.
std::unexpected<Rejection> UnknownDataset(std::string_view uri, const Limits& limits) {
  std::vector<std::string_view> prefixes;
  for (const Dataset& dataset : Datasets()) prefixes.push_back(dataset.prefix);
  const UriParts parts = PartsOf(uri);
  auto nearest = Nearest(parts.dataset, prefixes);
  if (nearest) {
    for (const DatasetRules& rules : AllDatasets()) {
      const bool opens = rules.dataset.prefix == *nearest && parts.member.size() < 128 &&
                         rules.open(parts.member, limits).has_value();
      if (!opens) continue;
      *nearest += parts.member;
      break;
    }
  }
  return Reject(
      RejectionCode::kInvalidBenchmark,
      fmt::format("unknown benchmark {}{}", Quoted(uri), nearest ? "; nearest: " + *nearest : ""));
}

Checked<Benchmark> OpenUri(std::string_view uri, const Limits& limits) {
  for (const DatasetRules& rules : AllDatasets()) {
    if (!uri.starts_with(rules.dataset.prefix)) continue;
    auto opened = rules.open(uri.substr(rules.dataset.prefix.size()), limits);
    if (!opened && opened.error().code == RejectionCode::kInvalidBenchmark) {
      opened.error().message =
          fmt::format("no benchmark {}: {}", Quoted(uri), opened.error().message);
    }
    return opened;
  }
  return UnknownDataset(uri, limits);
}

}  // namespace

Checked<Benchmark> OpenBenchmark(const Source& source, const Limits& limits) {
  if (const auto* uri = std::get_if<BenchmarkUri>(&source)) return OpenUri(uri->text, limits);
  LF_TRY(LoopTree start, ParseIr(std::get<IrText>(source).text, limits));
  return Benchmark{Dialect::kAgent, Target::kCpu, std::move(start)};
}

}  // namespace loopfleet::looptree
