// fuzz_case: runs the cases on standard input, one per line, as a failing test prints them. Exits
// with 1 if any is wrong, 2 if a line cannot be parsed.
//   fuzz_case --seed N COUNT   tries COUNT cases of seed N instead, each in every instruction set

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "tests/unit/worker/cpu/fuzz_check.h"

namespace {

using loopfleet::worker::FuzzCase;
using loopfleet::worker::FuzzCases;
using loopfleet::worker::FuzzCheck;

// True if the case is right.
bool Try(FuzzCheck& check, const FuzzCase& fuzz) {
  const std::string problems = check.Check(fuzz);
  if (!problems.empty()) fmt::print("wrong: {}\n{}\n", ToLine(fuzz), problems);
  return problems.empty();
}

int RunSeed(std::uint64_t seed, long count) {
  FuzzCases cases(seed);
  FuzzCheck check;
  long wrong = 0;
  for (long i = 0; i < count; ++i) {
    FuzzCase fuzz = cases.Next();
    for (const std::string& isa : FuzzCheck::IsasOfHost()) {
      fuzz.isa = isa;
      wrong += Try(check, fuzz) ? 0 : 1;
    }
  }
  fmt::print("{} cases, {} wrong\n", count, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--seed") {
    return RunSeed(std::strtoull(argv[2], nullptr, 10), std::strtol(argv[3], nullptr, 10));
  }
  FuzzCheck check;
  int status = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const auto fuzz = loopfleet::worker::ParseFuzzCase(line);
    if (!fuzz) {
      fmt::print(stderr, "fuzz_case: {}\n", fuzz.error().message);
      return 2;
    }
    if (!Try(check, *fuzz)) status = 1;
  }
  if (status == 0) fmt::print("right\n");
  return status;
}
