#pragma once
// LiveFeed: one value that many watch, as server-sent events. Each new value is made into bytes
// once and shared by all; a watcher that is slow misses values, never the newest one.
//
// Safe from any thread. Streams must not outlive their feed.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "monitoring/site.h"

namespace loopfleet::monitoring {

class LiveFeed {
 public:
  struct Options {
    // Each watcher holds a thread of the server. The next one is refused.
    std::size_t max_watchers = 128;
    // A watcher that hears nothing for so long is sent a comment: whoever is gone is noticed.
    std::chrono::milliseconds keep_alive{10'000};
  };
  explicit LiveFeed(const Options& options) : options_(options) {}

  void Publish(std::string_view json);  // one line
  // The newest value, at once if there is one, then each newer one. Null: there are as many
  // watchers as may be, or the feed is closed.
  std::unique_ptr<ReplyStream> Watch();
  void Close();  // streams are over

  std::size_t watchers() const;
  std::size_t max_watchers() const { return options_.max_watchers; }

 private:
  class Stream;
  using Bytes = std::shared_ptr<const std::string>;

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Bytes newest_;              // guarded by mutex_, as all below
  std::uint64_t number_ = 0;  // of the newest
  std::size_t watchers_ = 0;
  bool closed_ = false;
};

}  // namespace loopfleet::monitoring
