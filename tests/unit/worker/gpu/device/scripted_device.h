#pragma once
// ScriptedDevice: a fixture with a fake device child in a real fork server, and the compiler and
// reference of the fake backend. The child adds vectors on the host, and the number of elements
// selects a fault. Uses no driver.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "tests/unit/worker/processes/children_fixture.h"

namespace loopfleet::worker {

enum class DeviceFate : std::int64_t {
  kSticky = 211,          // RUN_CRASH, and the device is lost
  kHangNoticed = 223,     // RUN_TIMEOUT, and the device is lost
  kHang = 227,            // never answers
  kCrash = 229,           // SIGSEGV in the driver
  kExit = 233,            // exits without an answer
  kJunk = 239,            // a malformed answer
  kWrongOutput = 241,     // reports success
  kNoMemory = 251,        // RUN_OOM, and the child lives on
  kFault = 257,           // DEVICE_FAULT, and the device is lost
  kWrongWhenTimed = 263,  // wrong only in the run after timing
  kStickyWhenTimed = 269  // RUN_CRASH only while it is timed, and the device is lost
};

class ScriptedDevice : public ChildrenFixture {
 protected:
  // Memory that the children and the test share.
  struct Shared {
    std::atomic<int> checks{0};          // checks requested
    std::atomic<int> failing_checks{0};  // how many of the next checks fail
    std::atomic<int> children{0};        // children that got a request
    std::atomic<int> last_child{0};      // the process of the last of them
  };

  void SetUp() override;
  void TearDown() override;

  static std::string Uri(std::int64_t elements);

  Shared* shared_ = nullptr;
};

}  // namespace loopfleet::worker
