#pragma once
// How large the parts of a message may be. A decoder refuses what is beyond; a sender cuts before
// it sends (EncodedSize and OutOfBounds in codec.h tell where). They are chosen so that one
// outcome, which repeats its job, and one JobInfo, which holds a job and its outcome, always fit
// one message.

#include <cstddef>
#include <cstdint>

#include "common/job/job_spec.h"

namespace loopfleet::wire {

inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 20;  // one frame
inline constexpr std::uint32_t kMaxJobsPerMessage = 4096;
inline constexpr std::uint32_t kMaxOutcomesPerPage = 1000;
inline constexpr std::uint32_t kMaxReportsPerMessage = kMaxOutcomesPerPage;
inline constexpr std::uint32_t kMaxLeasesPerMessage =
    4096;  // granted, held, returned, acknowledged
inline constexpr std::uint32_t kMaxBatchesPerList = 1000;
inline constexpr std::uint32_t kMaxWorkersPerList = 10'000;
inline constexpr std::uint32_t kMaxFlagsPerMessage = 256;  // each may cost a look at all failures
inline constexpr std::uint32_t kMaxExplainedWorkers = 20;  // with kMaxLabels each they fit

inline constexpr std::uint32_t kMaxEventsPerList = 1000;
inline constexpr std::uint32_t kMaxFailureCounts = 256;
inline constexpr std::size_t kMaxKindBytes = 64;  // of an event, and the name of a failure code
inline constexpr std::size_t kMaxHindrances = 32;
inline constexpr std::size_t kMaxHindranceBytes = 256;

// Of one job, encoded; and of its texts.
inline constexpr std::size_t kMaxJobBytes = std::size_t{384} << 10;
inline constexpr std::size_t kMaxUriBytes = 4096;
inline constexpr std::size_t kMaxTagBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxLabels = kMostLabels;
inline constexpr std::size_t kMaxLabelBytes =
    kMostLabelBytes;  // also an affinity, also a capability

// Of what is said about a job. Encode cuts failure texts and facts to these by itself.
inline constexpr std::size_t kMaxFactBytes = 512;  // names, hardware and compiler facts
inline constexpr std::size_t kMaxFailureTextBytes = 4096;
inline constexpr std::size_t kMaxSamples = 4096;  // of one measurement
inline constexpr std::size_t kMaxNotes = 256;     // Evaluation::no_effect
inline constexpr std::size_t kMaxNoteBytes = 64;
inline constexpr std::size_t kMaxCodeHashBytes = 128;

// The programs that the rows of one page refer to, written out for each row: a small page must not
// make a large memory.
inline constexpr std::size_t kMaxPageSourceBytes = std::size_t{4} << 20;

// Added to the sum of EncodedSize of its parts, a bound on the size of a message.
inline constexpr std::size_t kMessageOverheadBytes = 8192;

}  // namespace loopfleet::wire
