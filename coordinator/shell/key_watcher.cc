#include "coordinator/shell/key_watcher.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "common/base/log.h"
#include "common/wire/keys/key_directory.h"
#include "common/wire/keys/role.h"

namespace loopfleet::coordinator {
namespace {

KeyText TextOf(const wire::PublicKey& key) { return key.ToText(); }

void Log(const char* what, const wire::PublicKey& key, const wire::Principal& principal) {
  log::Info("keys.{} role={} name={} key={}", what, wire::NameOf(principal.role), principal.name,
            key.Fingerprint());
}

}  // namespace

KeyWatcher::KeyWatcher(std::filesystem::path dir, wire::Authenticator authenticator,
                       const wire::PublicKey& public_key, UniqueFd changes)
    : dir_(std::move(dir)),
      authenticator_(std::move(authenticator)),
      public_key_(public_key),
      changes_(std::move(changes)) {}

Result<std::unique_ptr<KeyWatcher>> KeyWatcher::Start(wire::Context& context,
                                                      std::filesystem::path dir, Instant now) {
  LF_TRY(wire::KeyPair own, wire::LoadCoordinatorKeys(dir));
  // Watch before reading: changes in between are read again.
  UniqueFd changes(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  const wire::PublicKey public_key = own.public_key;
  LF_TRY(auto authenticator, wire::Authenticator::Start(context, std::move(own), {}));
  std::unique_ptr<KeyWatcher> key_watcher(
      new KeyWatcher(std::move(dir), std::move(authenticator), public_key, std::move(changes)));
  key_watcher->Watch();
  key_watcher->next_rescan_ = now + kRescan;
  LF_TRY(wire::LoadedKeys loaded, wire::LoadAuthorizedKeys(key_watcher->dir_));
  key_watcher->LogProblems(loaded.problems);
  log::Info("keys.loaded authorized={} problems={} key={}", loaded.keys.size(),
            loaded.problems.size(), public_key.Fingerprint());
  key_watcher->Use(std::move(loaded.keys));
  return key_watcher;
}

void KeyWatcher::Watch() {
  if (!changes_) return;
  constexpr std::uint32_t kMask = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVE | IN_ATTRIB |
                                  IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  for (const auto& place :
       {dir_, dir_ / "authorized", wire::AuthorizedDir(dir_, wire::Role::kClient),
        wire::AuthorizedDir(dir_, wire::Role::kWorker),
        wire::AuthorizedDir(dir_, wire::Role::kAdmin)}) {
    // A missing directory is noticed when its parent changes.
    ::inotify_add_watch(changes_.get(), place.c_str(), kMask);
  }
}

void KeyWatcher::AddTo(wire::Poller& poller) {
  poller.Add(authenticator_);
  if (changes_) poller.AddReadable(changes_.get());
}

// Only the fact of a change matters; the events themselves are dropped.
bool KeyWatcher::HasChanged() {
  if (!changes_) return false;
  alignas(inotify_event) std::array<char, 4096> events;
  bool changed = false;
  while (::read(changes_.get(), events.data(), events.size()) > 0) changed = true;
  return changed;
}

std::set<KeyText> KeyWatcher::TakeRevoked(Instant now) {
  if (HasChanged() || now >= next_rescan_) {
    next_rescan_ = now + kRescan;
    Reload();
  }
  return std::exchange(revoked_, {});
}

void KeyWatcher::Serve(Instant now) {
  authenticator_.Serve([this] {
    if (HasChanged()) Reload();
  });
  CountRefusals(now);
}

void KeyWatcher::Reload() {
  Watch();  // directories may have been replaced
  auto loaded = wire::LoadAuthorizedKeys(dir_);
  if (!loaded && loaded.error().kind == ErrorKind::kSystem) {
    LogProblems({loaded.error().message + "; the keys stay as they are"});
    return;
  }
  if (!loaded) {
    loaded = wire::LoadedKeys{
        .keys = {},
        .problems = {loaded.error().message + "; no key is accepted until this is fixed"}};
  }
  LogProblems(loaded->problems);
  for (const auto& [key, principal] : authenticator_.keys().all()) {
    const wire::Principal* now = loaded->keys.Find(key);
    if (now != nullptr && *now == principal) continue;
    Log("revoked", key, principal);
    revoked_.insert(TextOf(key));
  }
  for (const auto& [key, principal] : loaded->keys.all()) {
    const wire::Principal* before = authenticator_.keys().Find(key);
    if (before == nullptr || *before != principal) Log("authorized", key, principal);
  }
  Use(std::move(loaded->keys));
}

void KeyWatcher::Use(wire::AuthorizedKeys keys) {
  client_names_ = std::make_shared<const ClientNames>(NamesOf(keys));
  authenticator_.Replace(std::move(keys));
}

// Logs the problems only when they differ from the last ones.
void KeyWatcher::LogProblems(const std::vector<std::string>& problems) {
  if (problems == problems_) return;
  problems_ = problems;
  for (const std::string& problem : problems) log::Error("keys.problem {}", problem);
}

void KeyWatcher::CountRefusals(Instant now) {
  const auto refusals = authenticator_.TakeRefusals();
  if (refusals.count == 0) return;
  refused_count_ += refusals.count;
  unreported_refusals_ += refusals.count;
  if (now < next_refusal_log_) return;
  next_refusal_log_ = now + kRefusalLogPause;
  log::Warning("keys.refused count={} last=\"{}\"", std::exchange(unreported_refusals_, 0),
               refusals.last);
}

}  // namespace loopfleet::coordinator
