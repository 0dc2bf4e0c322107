#pragma once
// LiveFeed: publishes a value to many watchers, as server-sent events. Each new value is encoded
// once and shared by all watchers. A slow watcher misses values, but never the newest one.
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
    // Each watcher holds a thread of the server. Further watchers are refused.
    std::size_t max_watchers = 128;
    // A watcher gets a comment after this long without a value, so that a closed connection is
    // noticed.
    std::chrono::milliseconds keep_alive{10'000};
  };
  explicit LiveFeed(const Options& options) : options_(options) {}

  void Publish(std::string_view json);  // one line
  // Streams the newest value, at once if one was published, then each newer one. nullptr: the feed
  // has max_watchers, or is closed.
  std::unique_ptr<ReplyStream> Watch();
  void Close();  // ends all streams

  std::size_t watchers() const;
  std::size_t max_watchers() const { return options_.max_watchers; }

 private:
  class Stream;
  using Bytes = std::shared_ptr<const std::string>;

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Bytes newest_;              // guarded by mutex_, as all below
  std::uint64_t number_ = 0;  // of newest_
  std::size_t watchers_ = 0;
  bool closed_ = false;
};

}  // namespace loopfleet::monitoring
