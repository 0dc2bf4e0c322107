#include "bench/peers/numpy_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::bench {
namespace {

// The interpreter that Debian's python3-numpy is installed for.
constexpr const char* kPython = "/usr/bin/python3";

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(ErrorKind::kSystem, "no pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Result<NumpyPeer> NumpyPeer::Start(const std::filesystem::path& script) {
  NumpyPeer peer;
  LF_TRY(Pipe in, MakePipe());
  LF_TRY(Pipe out, MakePipe());
  LF_TRY(peer.process_, Subprocess::Start({.argv = {kPython, script.native()},
                                           .set_environment = {{"OMP_NUM_THREADS", "1"},
                                                               {"OPENBLAS_NUM_THREADS", "1"}},
                                           .stdin_fd = in.read.get(),
                                           .stdout_fd = out.write.get()}));
  peer.to_ = std::move(in.write);
  peer.from_ = std::move(out.read);
  in.read.Reset();
  out.write.Reset();
  LF_TRY(peer.version_, peer.ReadLine());
  return peer;
}

double NumpyPeer::Time(const std::string& name, std::int64_t size, int runs) {
  const std::string line = fmt::format("{} {} {}\n", name, size, runs);
  const ssize_t written = ::write(to_.get(), line.data(), line.size());
  LF_CHECK(written == static_cast<ssize_t>(line.size()), "numpy_peer.py does not listen");
  const auto answer = ReadLine();
  LF_CHECK(answer.has_value(), "{}", answer.error().message);
  return std::stod(*answer);
}

Result<std::string> NumpyPeer::ReadLine() {
  std::string line;
  char byte = 0;
  while (::read(from_.get(), &byte, 1) == 1) {
    if (byte == '\n') return line;
    line += byte;
  }
  return Fail(ErrorKind::kNotFound, fmt::format("{} with numpy does not run", kPython));
}

}  // namespace loopfleet::bench
