#pragma once
// LF_FAILPOINT(name): a named point in the code at which tests kill or pause the process. Compiles
// to nothing, not even the name, unless LOOPFLEET_FAILPOINTS is defined. Only the programs of
// tests/support/faulty_coordinator and faulty_command define it.

#ifdef LOOPFLEET_FAILPOINTS

#include <chrono>
#include <string_view>

namespace loopfleet {

// Configured by the environment, which is read once:
//   LOOPFLEET_FAILPOINT=NAME:COUNT[:kill | :pause=MS | :pause-while=FILE][,...]
// The COUNTth time that NAME is reached, the process is killed (SIGKILL: nothing is flushed), or
// the thread pauses for MS milliseconds or while FILE exists. COUNT 0: every time. Default: kill.
// LOOPFLEET_FAILPOINT_LOG=FILE collects the name of each point when it is first reached, one per
// line. Safe from any thread.
void ReachFailpoint(std::string_view name);
// Sets a duration that no flag sets, in milliseconds, if the environment has this variable.
void SetFromEnvironment(const char* name, std::chrono::milliseconds& duration);

}  // namespace loopfleet

#define LF_FAILPOINT(name) ::loopfleet::ReachFailpoint(name)
#define LF_FAILPOINT_SETTING(name, duration) ::loopfleet::SetFromEnvironment(name, duration)

#else

#define LF_FAILPOINT(name) static_cast<void>(0)
#define LF_FAILPOINT_SETTING(name, duration) static_cast<void>(0)

#endif
