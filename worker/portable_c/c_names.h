#pragma once
// CNames: the C identifiers for the loops of a program. Dim names are free text; each becomes an
// identifier that stays close to the name, is no keyword, and collides with no other name in the
// file.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/looptree/program/program.h"

namespace loopfleet::worker {

class CNames {
 public:
  explicit CNames(const looptree::Program& program);

  // The offset of the loop over `dim` inside `depth` other loops over it: m, m_1, m_2.
  const std::string& Offset(looptree::DimId dim, std::uint32_t depth);
  // The same in a loop that initialises accumulators: m_init.
  const std::string& InitOffset(looptree::DimId dim);
  // The number of elements left to the loops inside that loop: m_left, m_1_left.
  const std::string& Left(looptree::DimId dim, std::uint32_t depth);

 private:
  const std::string& Named(looptree::DimId dim, const std::string& suffix);

  std::vector<std::string> dims_;  // by DimId
  std::set<std::string, std::less<>> taken_;
  std::map<std::pair<looptree::DimId, std::string>, std::string> named_;
};

// The function of math.h that the file calls for the operation; empty: none.
std::string_view MathFunctionOf(looptree::Op op);

// Makes text safe inside a C comment: nothing in it ends the comment, begins another, is a
// trigraph, or is unprintable.
std::string InComment(std::string_view text);

}  // namespace loopfleet::worker
