#pragma once
// A directory for what a bench writes, removed when the bench ends, however it ends. On the
// project's disk, because /tmp is memory on many machines, where a sync costs nothing.

#include <filesystem>

#include "client/scratch_dir.h"

namespace loopfleet::bench {

inline Result<client::ScratchDir> CreateScratchDir() {
  return client::ScratchDir::CreateIn(std::filesystem::current_path());
}

}  // namespace loopfleet::bench
