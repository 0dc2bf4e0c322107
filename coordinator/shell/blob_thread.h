#pragma once
// BlobThread: serves a BlobFolder beside the event loop, which never waits for its disk. At most
// kMaxPieces pieces of workers wait for the disk, as many of clients, a quarter of them one
// client's, and as many answers for the event loop; and kMaxClientsWants questions of clients, so
// that those of workers do not wait for many. Public methods are for the event loop's thread.

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>

#include "common/base/bounded_queue.h"
#include "common/wire/transport/wakeup.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/shell/blob_folder.h"
#include "coordinator/shell/log_rate_limit.h"
#include "monitoring/metrics.h"

namespace loopfleet::coordinator {

class BlobThread {
 public:
  using Request = std::variant<KeepBlob, SendBlob>;

  // `done` is signalled when there are answers to take.
  BlobThread(BlobFolder folder, monitoring::CoordinatorMetrics& metrics, wire::Wakeup& done);
  ~BlobThread();  // drops what waits: its senders ask again
  BlobThread(const BlobThread&) = delete;
  BlobThread& operator=(const BlobThread&) = delete;

  // False: as many wait as may. The request stays with the caller.
  bool Add(Request& request);
  Effects TakeAnswers();

 private:
  static constexpr std::size_t kMaxPieces = 16;  // of at most 512 KiB
  static constexpr std::size_t kMaxPiecesPerClient = kMaxPieces / 4;
  static constexpr std::size_t kMaxClientsWants = 64;
  static constexpr std::size_t kMaxWaiting = 4'096;

  // What is in the queue. Any thread.
  class Waiting {
   public:
    bool Enter(const Request& request);  // false: as many wait as may
    void Leave(const Request& request);

   private:
    std::mutex mutex_;  // of what follows
    std::size_t workers_pieces_ = 0;
    std::size_t clients_pieces_ = 0;
    std::map<Uuid, std::size_t> pieces_of_;  // of these, by client
    std::size_t clients_wants_ = 0;
  };

  void Run();
  std::optional<Effect> Do(const KeepBlob& keep);
  std::optional<Effect> Do(const SendBlob& send);

  BlobFolder folder_;         // the thread's
  LogRateLimit refused_log_;  // likewise
  monitoring::CoordinatorMetrics& metrics_;
  wire::Wakeup& done_;
  BoundedQueue<Request> queue_{kMaxWaiting};
  Waiting waiting_;
  BoundedQueue<Effect> answers_{kMaxPieces};
  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace loopfleet::coordinator
