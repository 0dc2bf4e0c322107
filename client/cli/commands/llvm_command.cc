// `loopfleet llvm`: `add` sends bitcode to the coordinator, or puts it into a folder of workers;
// `get` brings an observed value; `passes` lists actions; `check` asks whether passes keep what a
// program does.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/python_process.h"
#include "client/cli/text/table.h"
#include "common/base/check.h"
#include "common/base/sha256.h"
#include "common/llvm_passes/pass_action.h"
#include "common/llvm_passes/program_uri.h"

namespace loopfleet::client {
namespace {

namespace fs = std::filesystem;

struct AddFlags {
  std::string file;
  std::string programs;
};

struct GetFlags {
  std::string sha256;
  std::string file;
};

struct PassesFlags {
  std::string space{passes::ActionSpaceName(passes::ActionSpace::kAll)};
  bool json = false;
};

struct CheckFlags {
  std::string benchmark;
  std::string passes;
  bool json = false;
};

int RefuseFile(const std::string& message) {
  fmt::print(stderr, "loopfleet: {}\n", message);
  return kExitFailed;
}

// Bitcode starts with one of two words. Whether it is sound, a worker's confined child finds out.
bool LooksLikeBitcode(std::string_view bytes) {
  constexpr std::string_view kRaw("BC\xC0\xDE");
  constexpr std::string_view kWrapped("\xDE\xC0\x17\x0B");
  return bytes.starts_with(kRaw) || bytes.starts_with(kWrapped);
}

// A reader sees no file or the whole of it.
Status Write(const fs::path& path, std::string_view bytes) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  const fs::path partial = path.string() + ".new";
  std::ofstream file(partial, std::ios::binary);
  file << bytes;
  file.close();
  if (file) fs::rename(partial, path, error);
  if (file && !error) return {};
  return Fail(ErrorKind::kSystem, fmt::format("cannot write '{}'", path.string()));
}

Answer<std::string> Send(const ClientSettings& settings, std::string_view bytes) {
  LF_TRY(Client client, Connect(settings));
  return client.AddProgram(bytes);
}

int RunAdd(const AddFlags& flags, const ClientSettings& settings) {
  std::ifstream file(flags.file, std::ios::binary);
  std::ostringstream stream;
  stream << file.rdbuf();
  if (!file) return RefuseFile(fmt::format("cannot read '{}'", flags.file));
  const std::string bytes = std::move(stream).str();
  if (!LooksLikeBitcode(bytes)) {
    return RefuseFile(
        fmt::format("'{}' is no LLVM bitcode; llvm-as-19 makes it from text, "
                    "clang-19 -emit-llvm -c from C",
                    flags.file));
  }
  if (bytes.size() > passes::kMostBitcodeBytes) {
    return RefuseFile(fmt::format("'{}' has {} bytes; at most {}", flags.file, bytes.size(),
                                  passes::kMostBitcodeBytes));
  }
  if (flags.programs.empty()) {
    const auto uri = Send(settings, bytes);
    if (!uri) return Report(uri.error());
    fmt::print("{}\n", *uri);
    return kExitOk;
  }
  const std::string hash = Sha256Of(bytes);
  if (const Status written = Write(flags.programs / fs::path(passes::BitcodeFile(hash)), bytes);
      !written) {
    return RefuseFile(written.error().message);
  }
  fmt::print("{}\n", passes::ToString(passes::BitcodeProgram{hash}));
  return kExitOk;
}

Answer<std::string> Get(const ClientSettings& settings, const std::string& sha256) {
  LF_TRY(Client client, Connect(settings));
  return client.GetBlob(sha256);
}

int RunGet(const GetFlags& flags, const ClientSettings& settings) {
  const auto bytes = Get(settings, flags.sha256);
  if (!bytes) return Report(bytes.error());
  if (const Status written = Write(flags.file, *bytes); !written) {
    return RefuseFile(written.error().message);
  }
  fmt::print("{}: {} bytes\n", flags.file, bytes->size());
  return kExitOk;
}

int RunPasses(const PassesFlags& flags) {
  Table table({"id", "action", "what LLVM runs"});
  auto json = nlohmann::ordered_json::array();
  const auto space = passes::ParseActionSpace(flags.space);
  LF_CHECK(space, "the command line checks it");
  for (const passes::PassAction& action : passes::ActionsOf(*space)) {
    const std::size_t id = json.size();
    table.Add({fmt::format("{}", id), std::string(action.flag), std::string(action.text)});
    json.push_back({{"id", id}, {"action", action.flag}, {"text", action.text}});
  }
  fmt::print("{}", flags.json ? json.dump() + "\n" : table.Text());
  return kExitOk;
}

int RunCheck(const CheckFlags& flags, const ClientSettings& settings) {
  // Passes begin with dashes, so their option is one word.
  std::vector<std::string> arguments = {flags.benchmark, "--passes=" + flags.passes, "--address",
                                        settings.address};
  if (!settings.keys_dir.empty()) arguments.insert(arguments.end(), {"--keys", settings.keys_dir});
  if (settings.timeout_s > 0) {
    arguments.insert(arguments.end(), {"--timeout", fmt::format("{}", settings.timeout_s)});
  }
  if (flags.json) arguments.emplace_back("--json");
  return BecomePython(
      {.subject = "checks of programs", .module = "loopfleet.llvm_semantics", .extra = "gym"},
      std::move(arguments));
}

// The SHA-256, as an outcome has it, also from the end of a bitcode://sha256/ URI.
std::string CheckSha256(std::string& text) {
  if (const std::size_t slash = text.rfind('/'); slash != text.npos) text.erase(0, slash + 1);
  return IsSha256(text) ? "" : fmt::format("'{}' is no SHA-256 of 64 hexadecimal digits", text);
}

}  // namespace

void AddLlvmCommands(CommandLine& line) {
  CLI::App& noun =
      line.AddNoun({.name = "llvm",
                    .description = "Programs for jobs of LLVM passes, and what comes out",
                    .examples = "loopfleet llvm add mine.bc"});
  const auto flags = std::make_shared<AddFlags>();
  CLI::App& add = line.AddCommand(
      noun,
      {.name = "add",
       .description = "Send bitcode to the coordinator and print the benchmark that it is",
       .examples = "loopfleet llvm add mine.bc\n"
                   "loopfleet llvm add mine.bc --llvm-programs /srv/programs"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunAdd(*flags, run.settings); });
  add.add_option("file", flags->file, "bitcode of LLVM 19 or older")->required()->type_name("FILE");
  add.add_option("--llvm-programs", flags->programs,
                 "copy it into this folder of workers instead; no coordinator is asked")
      ->type_name("FOLDER");

  const auto got = std::make_shared<GetFlags>();
  CLI::App& get = line.AddCommand(
      noun,
      {.name = "get",
       .description = "Write an observed value that is too large for an outcome to a file",
       .examples = "loopfleet llvm get HASH out.bc"},
      CommandLine::Talks::kToCoordinator,
      [got](const CommandRun& run) { return RunGet(*got, run.settings); });
  get.add_option("hash", got->sha256, "the sha256 that the outcome has in place of the value")
      ->required()
      ->transform(CLI::Validator(CheckSha256, "HASH"));
  get.add_option("file", got->file, "what to write")->required()->type_name("FILE");

  const auto listed = std::make_shared<PassesFlags>();
  CLI::App& list = line.AddCommand(
      noun,
      {.name = "passes",
       .description = "The actions by number and name, and what LLVM runs for each (no cluster)",
       .examples = "loopfleet llvm passes --space Passes19"},
      CommandLine::Talks::kOffline, [listed](const CommandRun&) { return RunPasses(*listed); });
  const auto name = [](passes::ActionSpace space) {
    return std::string(passes::ActionSpaceName(space));
  };
  list.add_option("--space", listed->space, "an action space (default PassesAll)")
      ->check(CLI::IsMember({name(passes::ActionSpace::kAll), name(passes::ActionSpace::kDistinct),
                             name(passes::ActionSpace::kPipelines)}));
  list.add_flag("--json", listed->json, "print one JSON array");

  const auto checked = std::make_shared<CheckFlags>();
  CLI::App& check = line.AddCommand(
      noun,
      {.name = "check",
       .description = "Run a program on this machine before and after passes, and compare what it "
                      "prints (docs/LLVM.md). Needs clang-19 and the Python package. Exit code: 0 "
                      "equal, 1 it prints something else, 65 not checkable",
       .examples = "loopfleet llvm check generator://csmith-v0/7 --passes mem2reg,gvn"},
      CommandLine::Talks::kToCoordinator,
      [checked](const CommandRun& run) { return RunCheck(*checked, run.settings); });
  check
      .add_option("benchmark", checked->benchmark,
                  "a program that takes no input, such as those of csmith-v0 and small-v0")
      ->required()
      ->type_name("BENCHMARK");
  check.add_option("--passes", checked->passes, "as those of `loopfleet eval`")
      ->required()
      ->type_name("A,B,C");
  check.add_flag("--json", checked->json, "print one JSON object");
}

}  // namespace loopfleet::client
