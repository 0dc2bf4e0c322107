#pragma once
// Code of a shared library on huge pages. A new process otherwise takes a page fault for each few
// pages of the library's file that it runs for the first time; forks share huge pages as they are.

namespace loopfleet::worker {

// Copies the code of the library that holds `function` to huge pages of this process, at the same
// addresses. For a process with one thread. False: this host has no huge pages for it; the code is
// where it was. Tools that know code by its file, such as perf, find no names in it afterwards.
bool MoveCodeToHugePages(const void* function);

}  // namespace loopfleet::worker
