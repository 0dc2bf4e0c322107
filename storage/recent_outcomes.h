#pragma once
// RecentOutcomes: the newest outcomes in brief, for overviews that people look at. A connection of
// its own, which cannot write. Like the views for people, and unlike StoreReader, it does not
// compare checksums: nothing is decided by what it says.
//
// One thread at a time.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/job/failure.h"
#include "common/job/ids.h"
#include "common/job/outcome.h"

namespace loopfleet::storage {

struct BriefOutcome {
  JobId job;
  std::string benchmark;  // "" where the job brought a program of its own
  std::string actions;    // "down,swap_up"
  std::string worker;
  std::string hardware_class;
  WallTime finished_at{};
  Nanos took{0};             // all stages, waiting too
  Nanos measure{0};          // the measure stage
  bool is_measured = false;  // for this job; else answered by another measurement, or failed
  // Exactly one of the two:
  struct Failed {
    FailureCode code = FailureCode::kWorkerCrashed;
    std::string message;
  };
  std::optional<Failed> failure;
  struct Figures {
    double gflop_per_second = 0;
    double elapsed_ns = 0;
    double spread = 0;
    std::string grade;
    bool is_suspect = false;
  };
  std::optional<Figures> figures;
};

class Connection;

class RecentOutcomes {
 public:
  // The file must exist. kNotFound, kSystem
  static Result<std::unique_ptr<RecentOutcomes>> Open(const std::filesystem::path& path);
  ~RecentOutcomes();

  // At most `max`: of the newest batch, its latest first, then of the one before it.
  Result<std::vector<BriefOutcome>> Newest(std::uint32_t max);

 private:
  explicit RecentOutcomes(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace loopfleet::storage
