#pragma once
// Action: one step of a walk. The command line, JSON, Python and the documents share one table of
// names; on the wire an action is a union member, never a string.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/looptree/program/rejection.h"

namespace loopfleet::looptree {

// Dialect simple.
struct ToggleMode {
  friend bool operator==(ToggleMode, ToggleMode) = default;
};
struct ToggleThread {
  friend bool operator==(ToggleThread, ToggleThread) = default;
};
struct IdleSplit {
  friend bool operator==(IdleSplit, IdleSplit) = default;
};  // "split": does nothing
// Both dialects.
struct Up {
  friend bool operator==(Up, Up) = default;
};
struct Down {
  friend bool operator==(Down, Down) = default;
};
// Dialect agent.
struct SwapUp {
  friend bool operator==(SwapUp, SwapUp) = default;
};
struct SwapDown {
  friend bool operator==(SwapDown, SwapDown) = default;
};
struct Split {
  std::int64_t factor = 2;
  friend bool operator==(Split, Split) = default;
};
struct Merge {
  friend bool operator==(Merge, Merge) = default;
};
struct Unroll {
  friend bool operator==(Unroll, Unroll) = default;
};
struct Vectorize {
  friend bool operator==(Vectorize, Vectorize) = default;
};
struct Undo {
  friend bool operator==(Undo, Undo) = default;
};  // also "undo_action"
struct Dummy {
  friend bool operator==(Dummy, Dummy) = default;
};

// Merges from the top until nothing merges, as LoopTune does before its first action.
struct MergeAllLoops {
  friend bool operator==(MergeAllLoops, MergeAllLoops) = default;
};

using Action = std::variant<ToggleMode, ToggleThread, IdleSplit, Up, Down, SwapUp, SwapDown, Split,
                            Merge, Unroll, Vectorize, Undo, Dummy, MergeAllLoops>;

std::string ActionName(const Action& action);  // "split_16"
std::vector<std::string> ActionNames(std::span<const Action> actions);
// For suggestions: every action, split with the usual factors.
std::vector<std::string_view> UsualActionNames();

// "split_K" takes any K >= 2. An unknown name is kInvalidAction with the nearest valid name.
Checked<Action> ParseAction(std::string_view name);
// A rejection has the index of the first bad name.
Checked<std::vector<Action>> ParseActions(std::span<const std::string> names);
// "down,swap_up": separated by commas; blanks around names are ignored; "" is no actions.
Checked<std::vector<Action>> ParseActionList(std::string_view text);

}  // namespace loopfleet::looptree
