#pragma once
// CNames: what the things of a program are called in C. Dims keep their names as far as C allows:
// names in programs are free text, so each becomes an identifier that is no keyword, collides with
// nothing else in the file and says as much as it can.

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

  // The offset of the loop over `dim` inside `depth` others over it: m, m_1, m_2.
  const std::string& Offset(looptree::DimId dim, std::uint32_t depth);
  // The same in a loop that sets accumulators: m_init.
  const std::string& InitOffset(looptree::DimId dim);
  // How many elements are left to the loops inside that one: m_left, m_1_left.
  const std::string& Left(looptree::DimId dim, std::uint32_t depth);

 private:
  const std::string& Named(looptree::DimId dim, const std::string& suffix);

  std::vector<std::string> dims_;  // by DimId
  std::set<std::string, std::less<>> taken_;
  std::map<std::pair<looptree::DimId, std::string>, std::string> named_;
};

// Text of ours or a client's that may stand in a comment: nothing in it ends the comment, begins
// another, is a trigraph, or is unprintable.
std::string InComment(std::string_view text);

}  // namespace loopfleet::worker
