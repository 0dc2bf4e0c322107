#include "client/cli/python_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "client/cli/exit_code.h"

namespace loopfleet::client {
namespace {

// Exit code 78, kExitBadConfig: the package is missing, or another one that it needs. A part that
// the package itself lacks is a bug, with a traceback.
constexpr const char* kProgram = R"(
import sys
try:
    from {} import main
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.startswith("loopfleet."):
        raise
    print(f"loopfleet: {} need the Python package '{{missing.name}}', which {{sys.executable}} does not have: "
          "`pip install '.[{}]'` in the repository installs it; LOOPFLEET_PYTHON names another interpreter", file=sys.stderr)
    sys.exit(78)
sys.exit(main(sys.argv[1:]))
)";

}  // namespace

int BecomePython(const PythonProgram& program, std::vector<std::string> arguments) {
  const char* named = std::getenv("LOOPFLEET_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  arguments.insert(arguments.begin(), {python, "-c",
                                       fmt::format(fmt::runtime(kProgram), program.module,
                                                   program.subject, program.extra)});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execvp(python.c_str(), pointers.data());
  fmt::print(stderr,
             "loopfleet: {} need the Python package, and '{}' cannot be started: {}; "
             "LOOPFLEET_PYTHON names another interpreter\n",
             program.subject, python, std::strerror(errno));
  return kExitBadConfig;
}

}  // namespace loopfleet::client
