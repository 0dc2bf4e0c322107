#pragma once
// Table: text in aligned columns.

#include <string>
#include <vector>

namespace loopfleet::client {

class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row);  // cells become Printable
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace loopfleet::client
