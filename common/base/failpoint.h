#pragma once
// LF_FAILPOINT(name): a named moment at which tests have the process die, stand still or go on. It
// is nothing at all, not even the name, unless LOOPFLEET_FAILPOINTS is defined, as it is for the
// programs of tests/support/faulty_coordinator and faulty_command only.

#ifdef LOOPFLEET_FAILPOINTS

#include <chrono>
#include <string_view>

namespace loopfleet {

// What happens is in the environment, read once:
//   LOOPFLEET_FAILPOINT=NAME:COUNT[:kill | :pause=MS | :pause-while=FILE][,...]
// The COUNTth time that NAME is reached the process is killed (SIGKILL: nothing is flushed), or
// that thread stands still for so long; COUNT 0 is every time. LOOPFLEET_FAILPOINT_LOG=FILE gets
// the name of each point when it is first reached, a line each. Safe from any thread.
void ReachFailpoint(std::string_view name);
// A duration that no flag sets, from the environment if it is there.
void SetFromEnvironment(const char* name, std::chrono::milliseconds& duration);

}  // namespace loopfleet

#define LF_FAILPOINT(name) ::loopfleet::ReachFailpoint(name)
#define LF_FAILPOINT_SETTING(name, duration) ::loopfleet::SetFromEnvironment(name, duration)

#else

#define LF_FAILPOINT(name) static_cast<void>(0)
#define LF_FAILPOINT_SETTING(name, duration) static_cast<void>(0)

#endif
