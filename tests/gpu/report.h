#pragma once
// Report: the results of gpu_conformance, as Markdown on standard output during the run, and as
// JSON in a file that is complete after each part, so that an aborted run keeps its results. Parts
// run one after the other. A part may come from another process, which prints its own Markdown.
//
// Goals are judged only on a real device: a fake driver's figures are not measurements. Used by one
// thread.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace loopfleet::worker {

class Report {
 public:
  using Json = nlohmann::ordered_json;
  enum class Device { kReal, kFake };

  // `file`: path of the JSON; empty: none.
  Report(std::string file, Device device);

  // Adds a fact about the whole run.
  void Fact(const std::string& name, Json value);
  // Begins a part. `title`: its heading in the Markdown.
  void Begin(const std::string& part, std::string_view title);
  // Prints a line of the Markdown.
  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    Print(fmt::format(format, std::forward<Args>(args)...));
  }
  // Adds a figure, or several related ones, to the part's JSON.
  void Row(Json row);
  // Records a failure: the part fails.
  void Fail(std::string_view what);
  // Records what could not be tested: the part can still pass.
  void Skip(std::string_view why);
  struct Goal {
    std::string name;
    double value = 0;
    enum class Bound { kAtLeast, kAtMost } bound = Bound::kAtLeast;
    double goal = 0;
    std::string not_judged;  // why not, such as a missing peer; empty: it is judged
  };
  void Judge(const Goal& goal);
  // Adds the parts from another process' JSON file. kNotFound: no file. kCorrupt: incomplete.
  Status Take(const std::string& file);

  bool is_fake() const { return device_ == Device::kFake; }
  int failures() const { return failures_; }
  // Ends the last part and completes the JSON.
  void Close();
  // Closes the report and prints the result.
  void End();

 private:
  void Print(const std::string& line);
  void EndPart();
  void Write() const;

  const std::string file_;
  const Device device_;
  Json json_;
  Json part_;
  int failures_ = 0;
  int not_judged_ = 0;       // goals not judged
  int failures_before_ = 0;  // failures_ when the part began
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace loopfleet::worker
