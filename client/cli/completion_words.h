#pragma once
// CompletionWords: what a shell offers for an argument or for a flag that CLI11 knows no choice of.

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace loopfleet::client {

struct CompletionWords {
  std::vector<std::string> words;  // none with a blank, a quote or a colon
  std::string command;             // prints more, one a line; "": none. Without single quotes
  bool is_list = false;            // several of them, with commas
  bool empty() const { return words.empty() && command.empty(); }
};

// By its name: a benchmark, a dataset, a batch, a worker, actions, passes, observations.
CompletionWords WordsFor(const CLI::Option& option);

}  // namespace loopfleet::client
