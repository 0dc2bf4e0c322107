#pragma once
// VectorShape: what the code generator has to know of an instruction set.

namespace loopfleet::worker {

struct VectorShape {
  unsigned lanes = 4;       // float32 in one register
  unsigned registers = 16;  // of them
  bool masks = false;       // loads and stores of some lanes only
};

}  // namespace loopfleet::worker
