#pragma once
// PythonProcess: commands that the Python package runs. This process becomes Python, so signals,
// the terminal and the exit code are Python's.

#include <string>
#include <vector>

namespace loopfleet::client {

struct PythonProgram {
  std::string subject;  // what messages are about: "campaigns"
  std::string module;   // whose main() takes the arguments: "loopfleet.campaign"
  std::string extra;    // of the package, to install: "dataset"
};

// Runs it with the interpreter LOOPFLEET_PYTHON, or python3. Returns only if that cannot be
// started: kExitBadConfig, after a message.
int BecomePython(const PythonProgram& program, std::vector<std::string> arguments);

}  // namespace loopfleet::client
