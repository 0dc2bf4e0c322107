#pragma once
// CodeMaker: the code of a job as people read it (C, LLVM IR, assembly), for its page. No compiler
// is in this process: the worker program beside it is asked, in a child process that gives up all
// rights before it sees the tree, at a low priority, with bounds on its time, its memory and what
// it says. One at a time; the last few answers are remembered.
//
// Safe from any thread of the page's server; those live as long as it (see subprocess.h).

#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

struct JobCode {
  std::string text;
  std::string note;      // whether it is the very code that was measured; "" where nothing was
  bool is_whole = true;  // false: `text` is the beginning
};

class CodeMaker {
 public:
  struct Options {
    std::filesystem::path program;             // loopfleet-worker; it need not be there
    Nanos patience = std::chrono::seconds(2);  // for another's answer, before it is BUSY
    Nanos limit = std::chrono::seconds(15);    // then it is ended
    std::size_t max_bytes = std::size_t{1} << 20;
    std::size_t remembered = 16;  // answers
  };
  explicit CodeMaker(Options options) : options_(std::move(options)) {}

  // What there is to read of a job: "c", "llvm-ir", and "asm" or, where a GPU measured it, "ptx".
  static std::vector<std::string_view> FormatsOf(const storage::StoredJob& job);

  // `format` is one of FormatsOf(job). For the instructions of the device that measured the job;
  // for this host's where none has. kNotFound: the program is not there; kUnavailable: others are
  // asking; kTimeout: it took too long; kInvalid: the job has no code, and why.
  Result<std::shared_ptr<const JobCode>> Make(const storage::StoredJob& job,
                                              std::string_view format);

 private:
  struct Answer {
    std::string question;
    std::shared_ptr<const JobCode> code;
  };
  struct Run {
    std::vector<std::string> arguments;
    std::string line;  // the job's
  };
  static Run RunFor(const storage::StoredJob& job, std::string_view format);
  Result<JobCode> Ask(const Run& run) const;

  const Options options_;
  std::timed_mutex one_at_a_time_;
  std::deque<Answer> answers_;  // the newest last; guarded by one_at_a_time_
};

}  // namespace loopfleet::coordinator
