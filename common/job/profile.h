#pragma once
// The task that says where the time of a kernel goes (docs/PROFILE.md): shares of the whole for
// roots, loops or lines of a loop tree. Its verdict is Observed, never a figure: an instrumented
// copy of the kernel, or one that is interrupted, is not what a loop schedule's figure is about.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "common/base/enum_names.h"
#include "common/job/failure.h"
#include "common/job/job_spec.h"
#include "common/job/observed.h"
#include "common/job/resolved_task.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet {

// What of a tree node a line of a profile is about.
enum class ProfilePart : std::uint8_t {
  kNode,     // the node itself; a root or a loop includes all inside
  kPack,     // copying an input of the root into panels
  kZero,     // setting the accumulators of the operation
  kCombine,  // combining partial results of the operation, and storing them
  kOutside,  // what belongs to no node: entering and leaving the kernel, waiting for other threads
};
template <>
struct EnumNames<ProfilePart> {
  static constexpr std::array kAll = {
      NamedValue{ProfilePart::kNode, "node"}, NamedValue{ProfilePart::kPack, "pack"},
      NamedValue{ProfilePart::kZero, "zero"}, NamedValue{ProfilePart::kCombine, "combine"},
      NamedValue{ProfilePart::kOutside, "outside"}};
};

// A node of the tree, or a part of what runs for it.
struct ProfilePlace {
  looptree::TreeRef ref = 0;  // 0 for kOutside
  ProfilePart part = ProfilePart::kNode;
  friend auto operator<=>(const ProfilePlace&, const ProfilePlace&) = default;
};

struct ProfileLine {
  ProfilePlace place;
  // Of the kernel's time, 0 to 1, with a 95 % interval. Roots and loops: with all inside, the
  // median over repetitions. Lines: of this line alone, by samples.
  double share = 0;
  double low = 0;
  double high = 0;
  // Of one run, in ticks of the clock that is read, which on a GPU are nanoseconds; 0 for lines.
  double cycles = 0;
  double entries = 0;  // of one run; 0 for lines
  double samples = 0;  // 0 for roots and loops
  // Lines: the operation whose instructions do this one's work, as multiply and add are one.
  std::optional<looptree::TreeRef> fused_into = std::nullopt;
  friend bool operator==(const ProfileLine&, const ProfileLine&) = default;
};

struct Profile {
  ProfileLevel level = ProfileLevel::kRoots;
  // The time of the instrumented copy, or of the kernel while it was sampled or ran with events
  // between its launches, over the plain kernel's, minus 1. Below 0: within what noise hides.
  double overhead = 0;
  double run_ns = 0;               // of one run of the plain kernel beside it; no figure
  std::string note;                // what is not shown and why; "": all is
  std::string code_hash;           // of the plain kernel, as Evaluation::code_hash
  std::vector<ProfileLine> lines;  // in the order of the tree
  friend bool operator==(const Profile&, const Profile&) = default;
};

inline constexpr std::size_t kMostProfileLines = 1024;

// "level", "overhead", "run_ns", "note", "code_hash", and lists of equal length, an element for
// each line: "ref", "part" (the number of a ProfilePart), "share", "low", "high", "cycles",
// "entries", "samples" and "fused_into" (-1: not fused).
Observed ToObserved(const Profile& profile);
// nullopt: they are no profile.
std::optional<Profile> ProfileOf(const Observed& observed);

// The job that profiles the tree of a loop schedule: `spec` without the fields that mean nothing
// for a profile.
JobSpec AsProfile(JobSpec spec, ProfileLevel level);

// What a profile of this level of the tree is stored under.
SubjectKey ProfileSubject(const SubjectKey& tree, ProfileLevel level);

// UNSUPPORTED: loops or lines of a GPU's kernel. Otherwise the failures of ResolveLoopSchedule.
std::expected<ResolvedTask, Failure> ResolveProfile(const JobSpec& spec);

// Why the values are not what the job asked for; nullopt: they are.
std::optional<std::string> WhyNoProfile(const JobSpec& spec, const Observed& observed);

}  // namespace loopfleet
