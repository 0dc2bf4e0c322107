#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "common/base/check.h"
#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/datasets/dataset_rules.h"
#include "common/looptree/program/number_text.h"
#include "common/looptree/text/text.h"

namespace loopfleet::looptree {
namespace {

const std::vector<DatasetRules>& Rules() {
  static const std::vector<DatasetRules> rules = [] {
    std::vector<DatasetRules> all;
    for (const auto part :
         {VectorDatasets(), MatrixDatasets(), ConvolutionDatasets(), ProgramDatasets()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return rules;
}

// "mm-v0" from "benchmark://mm-v0/".
std::string_view NameOf(std::string_view prefix) {
  prefix.remove_prefix(kScheme.size());
  prefix.remove_suffix(1);
  return prefix;
}

// A URI's dataset, with scheme and slash, and its member.
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

// Rejects a URI with an unknown dataset. Suggests the nearest dataset, followed by the member if
// that dataset has it.
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

std::span<const DatasetRules> AllDatasets() { return Rules(); }

std::span<const Dataset> Datasets() {
  static const std::vector<Dataset> datasets = [] {
    std::vector<Dataset> all;
    for (const DatasetRules& rules : Rules()) all.push_back(rules.dataset);
    return all;
  }();
  return datasets;
}

Checked<const Dataset*> FindDataset(std::string_view name) {
  std::string_view short_name = name;
  if (short_name.starts_with(kScheme)) short_name.remove_prefix(kScheme.size());
  if (short_name.ends_with('/')) short_name.remove_suffix(1);
  std::vector<std::string_view> names;
  for (const Dataset& dataset : Datasets()) {
    names.push_back(NameOf(dataset.prefix));
    if (names.back() == short_name) return &dataset;
  }
  return Reject(RejectionCode::kInvalidBenchmark, fmt::format("unknown dataset {}{}", Quoted(name),
                                                              NearestSuffix(short_name, names)));
}

std::string DatasetMember(const Dataset& dataset, std::uint64_t index) {
  LF_CHECK(index < dataset.size, "member {} of {}", index, dataset.prefix);
  const auto rules = std::ranges::find(Rules(), dataset.prefix, [](const DatasetRules& candidate) {
    return candidate.dataset.prefix;
  });
  LF_CHECK(rules != Rules().end(), "no dataset {}", dataset.prefix);
  return std::string(dataset.prefix) + rules->member(index);
}

std::string RandomBenchmark(std::span<const Dataset> datasets, SplitMix64& random) {
  std::vector<const Dataset*> finite;
  for (const Dataset& dataset : datasets) {
    if (dataset.size > 0) finite.push_back(&dataset);
  }
  LF_CHECK(!finite.empty(), "none of the datasets can be counted");
  const Dataset& dataset = *finite[random.Below(finite.size())];
  return DatasetMember(dataset, random.Below(dataset.size));
}

std::unexpected<Rejection> RejectMember(std::string_view member, std::string_view why,
                                        std::string_view nearest) {
  return Reject(RejectionCode::kInvalidBenchmark,
                fmt::format("{}: {}{}{}", Quoted(member), why,
                            nearest.empty() ? "" : "; nearest: ", nearest));
}

std::string WrongNumber(std::string_view member) {
  constexpr std::string_view kDigits = "0123456789";
  std::size_t begin = member.find_first_of(kDigits);
  while (begin != std::string_view::npos) {
    const std::size_t end = member.find_first_not_of(kDigits, begin);
    const std::string_view number = member.substr(begin, end - begin);
    if (number.size() > 1 && number[0] == '0') {
      return fmt::format("; {} has a leading zero", Quoted(number));
    }
    if (!ParseInteger(number)) {
      return fmt::format("; {} is too large: at most {}", Quoted(number),
                         std::numeric_limits<std::int64_t>::max());
    }
    begin = member.find_first_of(kDigits, end);
  }
  return "";
}

std::optional<std::vector<std::int64_t>> ParseSizes(std::string_view text, std::size_t count) {
  std::vector<std::int64_t> sizes;
  for (const std::string_view part : SplitText(text, '_', count + 1)) {
    const auto size = ParseInteger(part);
    if (!size || *size < 1 || sizes.size() == count) return std::nullopt;
    sizes.push_back(*size);
  }
  if (sizes.size() != count) return std::nullopt;
  return sizes;
}

Checked<Benchmark> OpenBenchmark(const Source& source, const Limits& limits) {
  if (const auto* uri = std::get_if<BenchmarkUri>(&source)) return OpenUri(uri->text, limits);
  LF_TRY(LoopTree start, ParseIr(std::get<IrText>(source).text, limits));
  return Benchmark{Dialect::kAgent, Target::kCpu, std::move(start)};
}

}  // namespace loopfleet::looptree
