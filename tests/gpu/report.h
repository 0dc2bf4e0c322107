#pragma once
// Report: what gpu_conformance found, told twice: as Markdown on standard output while it goes on,
// and as JSON in a file that is whole after each part, so that a run which is ended keeps what it
// has. Parts are begun one after the other. A part may come from another process, which has told it
// to standard output itself.
//
// A goal is judged only where the device is real: what a driver of the tests gives is no figure.

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

  // `file`: of the JSON; "": none.
  Report(std::string file, Device device);

  // Of the whole run.
  void Fact(const std::string& name, Json value);
  // `title`: its heading in the Markdown.
  void Begin(const std::string& part, std::string_view title);
  // A line of the Markdown.
  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    Print(fmt::format(format, std::forward<Args>(args)...));
  }
  // A figure, or several that belong together, of the part.
  void Row(Json row);
  // It went wrong: the part has failed.
  void Fail(std::string_view what);
  // It could not be tried: the part has passed with less.
  void Skip(std::string_view why);
  struct Goal {
    std::string name;
    double value = 0;
    enum class Bound { kAtLeast, kAtMost } bound = Bound::kAtLeast;
    double goal = 0;
    std::string not_judged;  // why it cannot be, as where a peer is missing; "": it can
  };
  void Judge(const Goal& goal);
  // What another process has found, as it stands in its file: kNotFound, kCorrupt.
  Status Take(const std::string& file);

  bool is_fake() const { return device_ == Device::kFake; }
  int failures() const { return failures_; }
  // Ends the last part and the report; and says how it went.
  void Close();
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
  int not_judged_ = 0;       // goals
  int failures_before_ = 0;  // the part
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace loopfleet::worker
