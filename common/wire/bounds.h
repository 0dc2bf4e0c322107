#pragma once
// Bounds on the parts of a message. A decoder refuses what exceeds them; a sender splits its
// messages to stay within them (EncodedSize and OutOfBounds in codec.h). One outcome, which repeats
// its job, and one JobInfo, which holds a job and its outcome, always fit one message.

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
inline constexpr std::uint32_t kMaxFlagsPerMessage = 256;  // each may cost a scan of all failures
inline constexpr std::uint32_t kMaxBestJobs = 64;
inline constexpr std::uint32_t kMaxExplainedWorkers = 20;  // with kMaxLabels each, they fit

inline constexpr std::uint32_t kMaxEventsPerList = 1000;
inline constexpr std::uint32_t kMaxFailureCounts = 256;
inline constexpr std::uint32_t kMaxAttention = 64;
inline constexpr std::size_t kMaxKindBytes = 64;  // of an event; also a failure code's name
inline constexpr std::size_t kMaxHindrances = 32;
inline constexpr std::size_t kMaxHindranceBytes = 256;

// One encoded job, and its texts.
inline constexpr std::size_t kMaxJobBytes = std::size_t{384} << 10;
inline constexpr std::size_t kMaxUriBytes = 4096;
inline constexpr std::size_t kMaxTagBytes = kMostTagBytes;
inline constexpr std::size_t kMaxTagNesting = 64;  // readers' JSON libraries recurse
inline constexpr std::size_t kMaxLabels = kMostLabels;
inline constexpr std::size_t kMaxLabelBytes =
    kMostLabelBytes;  // also of an affinity and a capability

// Facts about a job. Encode truncates failure texts and facts to these bounds.
inline constexpr std::size_t kMaxFactBytes = 512;  // names, hardware and compiler facts
inline constexpr std::size_t kMaxFailureTextBytes = 4096;
inline constexpr std::size_t kMaxSamples = 4096;  // of one measurement
inline constexpr std::size_t kMaxNotes = 256;     // Evaluation::notes
inline constexpr std::size_t kMaxNoteBytes = 64;
inline constexpr std::size_t kMaxCodeHashBytes = 128;

// A blob: a program, or an observed value.
inline constexpr std::uint64_t kMaxBlobBytes = std::uint64_t{16} << 20;
inline constexpr std::size_t kMaxBlobPieceBytes = std::size_t{512} << 10;  // of one, in a message

// The programs of one page, counted once for each row that refers to them: a small page must not
// expand to a large amount of memory.
inline constexpr std::size_t kMaxPageSourceBytes = std::size_t{4} << 20;

// A message has at most the sum of its parts' EncodedSize and these bytes.
inline constexpr std::size_t kMessageOverheadBytes = 8192;

}  // namespace loopfleet::wire
