#pragma once
// ScriptedDevice: a child in the place of the one that has the device, in a real fork server, with
// the compiler and reference of the fake backend. It adds vectors on the host, and the number of
// elements chooses what goes wrong. No driver is there.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "tests/unit/worker/processes/children_fixture.h"

namespace loopfleet::worker {

enum class DeviceFate : std::int64_t {
  kSticky = 211,         // RUN_CRASH, and nothing more can be done on it
  kHangNoticed = 223,    // RUN_TIMEOUT, and nothing more
  kHang = 227,           // no answer
  kCrash = 229,          // SIGSEGV in the driver
  kExit = 233,           // no answer and gone
  kJunk = 239,           // an answer that is none
  kWrongOutput = 241,    // and it says that all went well
  kNoMemory = 251,       // RUN_OOM, and it goes on
  kFault = 257,          // DEVICE_FAULT, and nothing more
  kWrongWhenTimed = 263  // right at first
};

class ScriptedDevice : public ChildrenFixture {
 protected:
  // What the children and the test share.
  struct Shared {
    std::atomic<int> checks{0};          // that were asked for
    std::atomic<int> failing_checks{0};  // so many of the next ones fail
    std::atomic<int> children{0};        // that were asked anything
  };

  void SetUp() override;
  void TearDown() override;

  static std::string Uri(std::int64_t elements);

  Shared* shared_ = nullptr;
};

}  // namespace loopfleet::worker
