#include "tests/gpu/report.h"

#include <cstdio>
#include <fstream>
#include <utility>

namespace loopfleet::worker {

Report::Report(std::string file, Device device) : file_(std::move(file)), device_(device) {
  json_["fake_device"] = is_fake();
  json_["complete"] = false;
  json_["parts"] = Json::array();
}

void Report::Print(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Report::Fact(const std::string& name, Json value) { json_[name] = std::move(value); }

void Report::Begin(const std::string& part, std::string_view title) {
  EndPart();
  part_ = Json{{"part", part}, {"fake_device", is_fake()}};
  failures_before_ = failures_;
  begun_ = std::chrono::steady_clock::now();
  fmt::print(stderr, "gpu_conformance: {}\n", part);
  Line("\n## {}{}\n", title, is_fake() ? " (FAKE DEVICE: no figure, not graded)" : "");
}

void Report::Row(Json row) { part_["rows"].push_back(std::move(row)); }

void Report::Fail(std::string_view what) {
  ++failures_;
  part_["failures"].push_back(what);
  Line("- FAILED: {}", what);
}

void Report::Skip(std::string_view why) {
  part_["not_tested"].push_back(why);
  Line("- NOT TESTED: {}", why);
}

void Report::Judge(const Goal& goal) {
  const bool at_least = goal.bound == Goal::Bound::kAtLeast;
  const bool is_reached = at_least ? goal.value >= goal.goal : goal.value <= goal.goal;
  if (!goal.not_judged.empty()) {
    ++not_judged_;
    part_["goals"].push_back(Json{{"name", goal.name},
                                  {"value", nullptr},
                                  {at_least ? "at_least" : "at_most", goal.goal},
                                  {"verdict", "not judged"},
                                  {"why", goal.not_judged}});
    Line("- goal: {}, {} {:g}: NOT JUDGED: {}", goal.name, at_least ? "at least" : "at most",
         goal.goal, goal.not_judged);
    return;
  }
  const char* const verdict = is_fake() ? "not graded" : is_reached ? "reached" : "NOT REACHED";
  part_["goals"].push_back(Json{{"name", goal.name},
                                {"value", goal.value},
                                {at_least ? "at_least" : "at_most", goal.goal},
                                {"verdict", verdict}});
  Line("- goal: {}: {:.3f}, {} {:g}: {}", goal.name, goal.value, at_least ? "at least" : "at most",
       goal.goal, verdict);
}

Status Report::Take(const std::string& file) {
  EndPart();
  std::ifstream stream(file);
  if (!stream) return loopfleet::Fail(ErrorKind::kNotFound, "it left no report");
  const Json other = Json::parse(stream, nullptr, false);
  if (!other.is_object() || !other.value("complete", false)) {
    return loopfleet::Fail(ErrorKind::kCorrupt, "its report is not whole");
  }
  for (const Json& part : other["parts"]) {
    failures_ += part.contains("failures") ? static_cast<int>(part["failures"].size()) : 0;
    for (const Json& goal : part.value("goals", Json::array())) {
      not_judged_ += goal["verdict"] == "not judged" ? 1 : 0;
    }
    json_["parts"].push_back(part);
  }
  Write();
  return {};
}

void Report::EndPart() {
  if (part_.is_null()) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun_;
  part_["seconds"] = took.count();
  part_["passed"] = failures_ == failures_before_;
  json_["parts"].push_back(std::exchange(part_, Json()));
  Write();
}

void Report::Close() {
  EndPart();
  json_["complete"] = true;
  json_["passed"] = failures_ == 0;
  Write();
}

void Report::End() {
  Close();
  if (not_judged_ > 0) Line("\n{} goals could not be judged.", not_judged_);
  Line("\n{}", failures_ == 0 ? "ALL PASSED" : "SOMETHING FAILED");
}

void Report::Write() const {
  if (file_.empty()) return;
  std::ofstream(file_) << json_.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace loopfleet::worker
