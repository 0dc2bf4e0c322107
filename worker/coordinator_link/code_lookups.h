#pragma once
// CodeLookups: asks the coordinator whether its store has a figure of a kernel's machine code
// (wire::CodeLookup). The preparing threads ask and wait; the connection's thread sends the
// questions and brings the answers. A question without an answer counts as "none found". Safe from
// any thread.

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/wire/message.h"

namespace loopfleet::worker {

class CodeLookups {
 public:
  // One question, asked while this exists. One at a time for each lease.
  class Question {
   public:
    Question(CodeLookups& lookups, LeaseId lease, std::string code_hash);
    ~Question();
    Question(const Question&) = delete;
    Question& operator=(const Question&) = delete;
    // Waits for the answer, at most for `patience`.
    std::optional<Evaluation> Await(Nanos patience);

   private:
    CodeLookups& lookups_;
    const LeaseId lease_;
  };

  // For the connection's thread.
  std::vector<wire::CodeLookup> TakeAsked();
  void Answer(wire::CodeLookupAnswer answer);

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable answered_;
  std::vector<wire::CodeLookup> asked_;                                 // not yet taken
  std::map<LeaseId, std::optional<wire::CodeLookupAnswer>> questions_;  // with their answers
};

}  // namespace loopfleet::worker
