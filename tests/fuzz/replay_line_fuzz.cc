// Bytes as the input of `loopfleet replay`: each line that is not blank gives one line of JSON, a
// tree or an error with a known code. The exit status is 0 only if none is an error.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>
#include <string>

#include "client/cli/commands/replay.h"
#include "client/cli/exit_code.h"
#include "common/base/check.h"
#include "common/job/failure.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

bool IsBlank(const std::string& line) {
  return line.find_first_not_of(" \t\r") == std::string::npos;
}

void CheckAnswer(const std::string& line, bool& failed) {
  const auto answer = nlohmann::json::parse(line, nullptr, false);
  LF_CHECK(answer.is_object(), "not an object: {}", line.substr(0, 200));
  if (!answer.contains("error")) {
    LF_CHECK(answer.value("tree_key", std::string(32, '0')).size() == 32, "{}", line);
    return;
  }
  failed = true;
  const auto& error = answer["error"];
  const std::string code = error.value("code", "");
  LF_CHECK(loopfleet::ParseFailureCode(code).has_value(), "code '{}'", code);
  LF_CHECK(!error.value("message", "").empty() && line.size() < 4096, "{}", line);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::istringstream in(text);
  std::ostringstream out;
  const int exit_code = loopfleet::client::RunReplay(in, out);
  std::size_t asked = 0;
  std::istringstream questions(text);
  for (std::string line; std::getline(questions, line);) asked += !IsBlank(line);
  std::size_t answered = 0;
  bool failed = false;
  std::istringstream answers(out.str());
  for (std::string line; std::getline(answers, line); ++answered) CheckAnswer(line, failed);
  LF_CHECK(asked == answered, "{} lines, {} answers", asked, answered);
  LF_CHECK((exit_code != loopfleet::client::kExitOk) == failed, "exit code {}", exit_code);
  return 0;
}
