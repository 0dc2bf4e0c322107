#pragma once
// ProgramDataset: the programs of passes by name, for listing, counting and drawing.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace loopfleet::passes {

struct ProgramDataset {
  std::string_view prefix;       // "generator://csmith-v0/"
  std::string_view description;  // one line
  std::uint64_t size = 0;        // number of members; 0: cannot be enumerated
  std::string_view example;      // a program URI
};
std::span<const ProgramDataset> ProgramDatasets();
// The URI of member `index` < size, in the dataset's own order.
std::string ProgramMember(const ProgramDataset& dataset, std::uint64_t index);
// The dataset of a valid program URI.
const ProgramDataset& DatasetOfProgram(std::string_view uri);

}  // namespace loopfleet::passes
