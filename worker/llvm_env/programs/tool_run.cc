#include "worker/llvm_env/programs/tool_run.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/subprocess.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kLastWords = 1024;

// The last `most` bytes of the file.
std::string EndOf(const UniqueFd& file, std::size_t most) {
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) return {};
  const auto size = static_cast<std::size_t>(facts.st_size);
  std::string bytes(std::min(size, most), '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t count = ::pread(file.get(), bytes.data() + got, bytes.size() - got,
                                  static_cast<off_t>(size - bytes.size() + got));
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

Result<std::string> RunTool(const std::vector<std::string>& argv, std::string_view input,
                            const ToolLimits& limits) {
  LF_TRY(const UniqueFd in, MemoryFile(input));
  LF_TRY(const UniqueFd out, MemoryFile(""));
  LF_TRY(const UniqueFd err, MemoryFile(""));
  // prlimit, because this process has more than one thread: between its own fork and exec little is
  // allowed.
  Subprocess::Options options;
  options.argv = {"prlimit",
                  fmt::format("--data={}", limits.memory_bytes),
                  fmt::format("--fsize={}", limits.output_bytes),
                  fmt::format("--cpu={}", limits.wall_time.count()),
                  "--core=0",
                  "--"};
  options.argv.insert(options.argv.end(), argv.begin(), argv.end());
  options.set_environment = {{"LC_ALL", "C"}};
  // Csmith reads the sizes of C's types from a file where it runs, or leaves one there.
  options.working_directory = "/proc";
  options.group = Subprocess::Group::kOwn;
  options.stdin_fd = in.get();
  options.stdout_fd = out.get();
  options.stderr_fd = err.get();
  LF_TRY(Subprocess process, Subprocess::Start(options));
  const auto status = process.WaitFor(limits.wall_time);
  if (!status) {
    process.End(Nanos{0});
    return Fail(ErrorKind::kTimeout,
                fmt::format("{} took longer than {} s", argv[0], limits.wall_time.count()));
  }
  if (status->code != 0) {
    const std::string last_words = EndOf(err, kLastWords);
    const bool is_missing =
        last_words.find("failed to execute " + argv[0]) != std::string::npos;  // prlimit's words
    return Fail(is_missing ? ErrorKind::kNotFound : ErrorKind::kInvalid,
                fmt::format("{} {}: {}", argv[0], ToString(*status), last_words));
  }
  return EndOf(out, limits.output_bytes);
}

}  // namespace loopfleet::worker
