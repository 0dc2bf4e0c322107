#include "common/llvm_passes/program_datasets.h"

#include <gtest/gtest.h>

#include <set>

#include "common/llvm_passes/program_uri.h"

namespace loopfleet::passes {
namespace {

TEST(ProgramDatasets, MembersAndExamplesAreProgramsOfTheirDataset) {
  for (const ProgramDataset& dataset : ProgramDatasets()) {
    EXPECT_TRUE(ParseProgramUri(dataset.example)) << dataset.example;
    EXPECT_EQ(DatasetOfProgram(dataset.example).prefix, dataset.prefix);
    if (dataset.size == 0) continue;
    for (const std::uint64_t index : {std::uint64_t{0}, dataset.size - 1}) {
      const std::string member = ProgramMember(dataset, index);
      EXPECT_TRUE(member.starts_with(dataset.prefix)) << member;
      EXPECT_TRUE(ParseProgramUri(member)) << member;
    }
  }
}

TEST(ProgramDatasets, NamedMembersDiffer) {
  for (const ProgramDataset& dataset : ProgramDatasets()) {
    if (dataset.size > 1'000) continue;
    std::set<std::string> members;
    for (std::uint64_t i = 0; i < dataset.size; ++i) members.insert(ProgramMember(dataset, i));
    EXPECT_EQ(members.size(), dataset.size) << dataset.prefix;
  }
}

}  // namespace
}  // namespace loopfleet::passes
