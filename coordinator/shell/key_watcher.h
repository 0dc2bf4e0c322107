#pragma once
// KeyWatcher: the coordinator's keys while it runs. Answers handshakes, notices changes of the key
// files, and reports revoked keys. Belongs to the event loop's thread.
//
// Changes are noticed by inotify: a message sent after its key file was removed is not acted upon,
// and a peer that connects after its key file was added is let in. Where inotify does not reach (a
// network file system changed elsewhere), changes are noticed within kRescan. If the files cannot
// be read because of a system error, the keys stay as they are. If the directory is missing or
// unsafe, no key is accepted until that is fixed.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/wire/transport/authenticator.h"
#include "common/wire/transport/poller.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/shell/identity.h"

namespace loopfleet::coordinator {

class KeyWatcher {
 public:
  static Result<std::unique_ptr<KeyWatcher>> Start(wire::Context& context,
                                                   std::filesystem::path dir, Instant now);

  wire::Authenticator& authenticator() { return authenticator_; }
  const wire::PublicKey& public_key() const { return public_key_; }
  void AddTo(wire::Poller& poller);

  // The keys revoked since the last call. Cheap: called before each message is handled.
  std::set<KeyText> TakeRevoked(Instant now);
  void Serve(Instant now);  // answers handshakes
  // Of the keys that are authorized now; never null.
  std::shared_ptr<const ClientNames> client_names() const { return client_names_; }
  // Handshakes refused since the last call.
  std::uint64_t TakeRefusedCount() { return std::exchange(refused_count_, 0); }

 private:
  static constexpr std::chrono::seconds kRescan{30};
  static constexpr std::chrono::seconds kRefusalLogPause{1};  // an attacker must not fill the log

  KeyWatcher(std::filesystem::path dir, wire::Authenticator authenticator,
             const wire::PublicKey& public_key, UniqueFd changes);
  void Watch();
  bool HasChanged();
  void Reload();
  void Use(wire::AuthorizedKeys keys);
  void LogProblems(const std::vector<std::string>& problems);
  void CountRefusals(Instant now);

  const std::filesystem::path dir_;
  wire::Authenticator authenticator_;
  const wire::PublicKey public_key_;
  UniqueFd changes_;  // inotify; invalid: only rescans
  Instant next_rescan_{};
  Instant next_refusal_log_{};
  std::vector<std::string> problems_;  // last logged
  std::set<KeyText> revoked_;          // not yet taken
  std::shared_ptr<const ClientNames> client_names_ = std::make_shared<const ClientNames>();
  std::uint64_t refused_count_ = 0;
  std::uint64_t unreported_refusals_ = 0;
};

}  // namespace loopfleet::coordinator
