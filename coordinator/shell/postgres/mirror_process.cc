#include "coordinator/shell/postgres/mirror_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "common/base/log.h"

namespace loopfleet::coordinator {

MirrorProcess::MirrorProcess(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      started_at_(clock.Now()),
      thread_([this] { Run(); }) {}

MirrorProcess::~MirrorProcess() {
  stopping_ = true;
  thread_.join();
}

MirrorModel MirrorProcess::state() const {
  const std::lock_guard lock(mutex_);
  MirrorModel state = state_;
  const Instant now = clock_.Now();
  if (state.waiting > 0) state.behind += now - told_at_;
  if (trouble_since_) state.behind = std::max<Nanos>(state.behind, now - *trouble_since_);
  const Nanos silent_for = now - std::max(told_at_, started_at_);
  if (silent_for > kMoment) {
    state.behind = std::max(state.behind, silent_for);
    if (state.trouble.empty()) state.trouble = "loopfleet-mirror has said nothing since";
  }
  return state;
}

bool MirrorProcess::has_caught_up() const {
  const std::lock_guard lock(mutex_);
  const bool is_fresh = clock_.Now() < told_at_ + kMoment;
  return is_fresh && state_.waiting == 0 && state_.trouble.empty();
}

void MirrorProcess::Run() {
  while (!stopping_) {
    std::string why = RunOnce();
    if (stopping_) return;
    log::Error("mirror.ended reason={}", why);
    SetTrouble(std::move(why));
    const Instant until = clock_.Now() + kRestartPause;
    while (!stopping_ && clock_.Now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

std::string MirrorProcess::RunOnce() {
  auto output = OpenPipe();
  if (!output) return output.error().message;
  // The address may hold a password: other users can read a command line, but no environment.
  auto process = Subprocess::Start({.argv = {options_.program, "--db", options_.database},
                                    .set_environment = {{"LOOPFLEET_RESULTS", options_.results}},
                                    .clear_environment_prefixes = {},
                                    .group = Subprocess::Group::kOwn,
                                    .stdout_fd = output->write.get()});
  if (!process) return process.error().message;
  output->write.Reset();
  std::string line;
  while (!stopping_) {
    pollfd waiting{.fd = output->read.get(), .events = POLLIN, .revents = 0};
    constexpr int kSliceMs = 100;
    if (::poll(&waiting, 1, kSliceMs) <= 0) continue;
    char bytes[4096];
    const ssize_t count = ::read(output->read.get(), bytes, sizeof bytes);
    if (count <= 0) break;
    for (const char byte : std::string_view(bytes, static_cast<std::size_t>(count))) {
      if (byte != '\n') {
        line += byte;
        continue;
      }
      OnLine(line);
      line.clear();
    }
  }
  constexpr std::chrono::seconds kGrace{5};
  return fmt::format("loopfleet-mirror {}: see the log", ToString(process->End(kGrace)));
}

void MirrorProcess::OnLine(const std::string& line) {
  std::optional<MirrorModel> told = ParseMirror(line);
  if (!told) return;
  SetTrouble(told->trouble);
  const std::lock_guard lock(mutex_);
  state_ = *std::move(told);
  told_at_ = clock_.Now();
}

void MirrorProcess::SetTrouble(std::string trouble) {
  const std::lock_guard lock(mutex_);
  if (trouble.empty()) {
    trouble_since_.reset();
  } else if (!trouble_since_) {
    trouble_since_ = clock_.Now();
  }
  state_.trouble = std::move(trouble);
}

}  // namespace loopfleet::coordinator
