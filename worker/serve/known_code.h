#pragma once
// KnownCode: which code was verified before, for which tree, kept in a file over runs. A line for
// each: its hash and the tree's key. Several processes may append at once.

#include <string>
#include <unordered_set>

namespace loopfleet::worker {

class KnownCode {
 public:
  // `path` "": kept in memory only. A file that cannot be read counts as empty, one that cannot be
  // written as full: then code is verified again.
  explicit KnownCode(std::string path);

  bool Has(const std::string& code_hash, const std::string& tree_key) const;
  void Add(const std::string& code_hash, const std::string& tree_key);

 private:
  const std::string path_;
  std::unordered_set<std::string> lines_;
};

}  // namespace loopfleet::worker
