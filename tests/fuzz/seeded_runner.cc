// A main() for fuzz targets without libFuzzer: runs the corpus, then mutations of it drawn from a
// seed, so that every machine tries the same inputs.
//
//   fuzz_NAME --corpus DIR [--words FILE] [--runs N | --seconds S] [--seed N]
//   fuzz_NAME FILE...      runs these inputs only
//
// An input that kills the process is saved as crash-fuzz_NAME in the working directory.

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/number_in.h"
#include "common/base/random.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

constexpr std::size_t kMaxBytes = 64 << 10;  // of a mutated input

// The current input, for the signal handler that saves it. Globals, as handlers may do little.
std::string g_input;
std::string g_crash_file;

void SaveInput() {
  const int file = open(g_crash_file.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (file < 0) return;
  const ssize_t written = write(file, g_input.data(), g_input.size());
  close(file);
  constexpr std::string_view kSaved = "the input is in the file ";
  if (written < 0 || write(STDERR_FILENO, kSaved.data(), kSaved.size()) < 0 ||
      write(STDERR_FILENO, g_crash_file.data(), g_crash_file.size()) < 0 ||
      write(STDERR_FILENO, "\n", 1) < 0)
    return;
}

void OnSignal(int number) {
  SaveInput();
  signal(number, SIG_DFL);
  raise(number);
}

void WatchForDeath(const std::string& name) {
  g_crash_file = "crash-" + name;
  for (const int number : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) signal(number, &OnSignal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(&SaveInput);
}

std::string Contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fmt::print(stderr, "cannot read {}\n", path.string());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

// The words of a libFuzzer dictionary: lines of "text" with \xAB escapes.
std::vector<std::string> ReadWords(const std::filesystem::path& path) {
  std::vector<std::string> words;
  std::ifstream file(path);
  if (!file) {
    fmt::print(stderr, "cannot read {}\n", path.string());
    std::exit(2);
  }
  for (std::string line; std::getline(file, line);) {
    if (line.size() < 3 || line.front() != '"' || line.back() != '"') continue;
    std::string word;
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      unsigned code = 0;
      if (line[i] == '\\' && line[i + 1] == 'x' &&
          std::from_chars(&line[i + 2], &line[i + 4], code, 16).ec == std::errc()) {
        word += static_cast<char>(code);
        i += 3;
      } else if (line[i] == '\\') {
        word += line[++i];
      } else {
        word += line[i];
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

class Mutator {
 public:
  Mutator(std::vector<std::string> corpus, std::vector<std::string> words, std::uint64_t seed)
      : corpus_(std::move(corpus)), words_(std::move(words)), random_(seed) {}

  std::string Next() {
    std::string input = corpus_[random_.Below(corpus_.size())];
    for (std::uint64_t i = random_.Below(6) + 1; i > 0; --i) Mutate(input);
    if (input.size() > kMaxBytes) input.resize(kMaxBytes);
    return input;
  }

 private:
  std::size_t Place(const std::string& input) { return random_.Below(input.size() + 1); }

  void Mutate(std::string& input) {
    if (input.empty()) {
      Insert(input);
      return;
    }
    const std::size_t at = random_.Below(input.size());
    switch (random_.Below(8)) {
      case 0: input[at] = static_cast<char>(input[at] ^ (1 << random_.Below(8))); break;
      case 1: input[at] = static_cast<char>(random_.Below(256)); break;
      case 2: input.erase(at, random_.Below(8) + 1); break;
      case 3: Insert(input); break;
      case 4: ReplaceNumber(input, at); break;
      case 5: Repeat(input, at); break;
      case 6: Splice(input); break;
      default: WriteInteger(input, at); break;
    }
  }

  void Insert(std::string& input) {
    if (words_.empty() || random_.Below(4) == 0) {
      input.insert(Place(input), 1, static_cast<char>(random_.Below(256)));
    } else {
      input.insert(Place(input), words_[random_.Below(words_.size())]);
    }
  }

  // Replaces the first number at or after `at` with one at the edge of some type's range.
  void ReplaceNumber(std::string& input, std::size_t at) {
    constexpr std::array<std::string_view, 18> kEdges = {"0",          "1",
                                                         "-1",         "2",
                                                         "7",          "31",
                                                         "32",         "33",
                                                         "255",        "256",
                                                         "257",        "2147483647",
                                                         "2147483648", "4294967295",
                                                         "4294967296", "9223372036854775807",
                                                         "65537",      "9223372036854775808"};
    constexpr std::string_view kDigits = "0123456789";
    const std::size_t begin = input.find_first_of(kDigits, at);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(input.find_first_not_of(kDigits, begin), input.size());
    input.replace(begin, end - begin, kEdges[random_.Below(kEdges.size())]);
  }

  void Repeat(std::string& input, std::size_t at) {
    const std::string part = input.substr(at, random_.Below(64) + 1);
    const std::uint64_t most = random_.Below(8) == 0 ? 400 : 4;
    std::string repeated;
    for (std::uint64_t i = random_.Below(most) + 1; i > 0; --i) repeated += part;
    input.insert(at, repeated);
  }

  void Splice(std::string& input) {
    const std::string& other = corpus_[random_.Below(corpus_.size())];
    input = input.substr(0, Place(input)) + other.substr(Place(other));
  }

  // Overwrites 1 to 8 bytes with a binary integer.
  void WriteInteger(std::string& input, std::size_t at) {
    constexpr std::array<std::uint64_t, 8> kEdges = {
        0, 1, ~std::uint64_t{0}, 0x7f, 0x80, 0x7fffffff, 0x7fffffffffffffff, 0x8000000000000000};
    const std::uint64_t value = kEdges[random_.Below(kEdges.size())];
    const std::size_t size = std::min<std::size_t>(1U << random_.Below(4), input.size() - at);
    for (std::size_t i = 0; i < size; ++i) input[at + i] = static_cast<char>(value >> (8 * i));
  }

  std::vector<std::string> corpus_;
  std::vector<std::string> words_;
  loopfleet::SplitMix64 random_;
};

struct Options {
  std::vector<std::filesystem::path> files;
  std::filesystem::path corpus;
  std::filesystem::path words;
  std::uint64_t runs = 10'000;
  std::uint64_t seconds = 0;
  std::uint64_t seed = 1;
};

std::optional<Options> ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (!name.starts_with("--")) {
      options.files.emplace_back(name);
      continue;
    }
    if (++i == argc) return std::nullopt;
    const std::string_view value = argv[i];
    if (name == "--corpus") {
      options.corpus = value;
    } else if (name == "--words") {
      options.words = value;
    } else {
      const auto number = loopfleet::NumberIn<std::uint64_t>(value);
      if (!number) return std::nullopt;
      if (name == "--runs")
        options.runs = *number;
      else if (name == "--seconds")
        options.seconds = *number;
      else if (name == "--seed")
        options.seed = *number;
      else
        return std::nullopt;
    }
  }
  if (options.files.empty() == options.corpus.empty()) return std::nullopt;
  return options;
}

using Clock = std::chrono::steady_clock;
double g_slowest_ms = 0;

void RunOne(std::string input) {
  g_input = std::move(input);
  // A copy of exactly this size, so that a sanitizer sees a read past the end.
  const std::vector<std::uint8_t> exact(g_input.begin(), g_input.end());
  const auto start = Clock::now();
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  const std::chrono::duration<double, std::milli> took = Clock::now() - start;
  g_slowest_ms = std::max(g_slowest_ms, took.count());
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path program = argv[0];
  const auto options = ParseOptions(argc, argv);
  if (!options) {
    fmt::print(stderr,
               "usage: {0} --corpus DIR [--words FILE] [--runs N | --seconds S] [--seed N]\n"
               "       {0} FILE...\n",
               program.filename().string());
    return 2;
  }
  WatchForDeath(program.filename().string());
  std::vector<std::filesystem::path> files = options->files;
  if (files.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(options->corpus)) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());  // the same order on every machine
  }
  std::vector<std::string> corpus;
  for (const auto& file : files) {
    corpus.push_back(Contents(file));
    RunOne(corpus.back());
  }
  std::uint64_t runs = 0;
  if (options->files.empty()) {
    if (corpus.empty()) {
      fmt::print(stderr, "{} holds no inputs\n", options->corpus.string());
      return 2;
    }
    Mutator mutator(std::move(corpus),
                    options->words.empty() ? std::vector<std::string>{} : ReadWords(options->words),
                    options->seed);
    const auto end = Clock::now() + std::chrono::seconds(options->seconds);
    while (options->seconds > 0 ? Clock::now() < end : runs < options->runs) {
      RunOne(mutator.Next());
      ++runs;
    }
  }
  fmt::print("{}: {} inputs of the corpus, {} mutated; the slowest took {:.1f} ms\n",
             program.filename().string(), files.size(), runs, g_slowest_ms);
  return 0;
}
