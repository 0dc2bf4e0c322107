#include "monitoring/live_feed.h"

#include <fmt/format.h>

namespace loopfleet::monitoring {

class LiveFeed::Stream final : public ReplyStream {
 public:
  explicit Stream(LiveFeed& feed) : feed_(feed) {}
  ~Stream() override {
    const std::lock_guard lock(feed_.mutex_);
    --feed_.watchers_;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Bytes Next() override {
    static const Bytes kStillHere = std::make_shared<const std::string>(": still here\n\n");
    std::unique_lock lock(feed_.mutex_);
    const bool woken = feed_.changed_.wait_for(
        lock, feed_.options_.keep_alive, [&] { return feed_.closed_ || feed_.number_ > seen_; });
    if (feed_.closed_) return nullptr;
    if (!woken) return kStillHere;
    seen_ = feed_.number_;
    return feed_.newest_;
  }

 private:
  LiveFeed& feed_;
  std::uint64_t seen_ = 0;
};

void LiveFeed::Publish(std::string_view json) {
  const std::lock_guard lock(mutex_);
  ++number_;
  newest_ = std::make_shared<const std::string>(fmt::format("id: {}\ndata: {}\n\n", number_, json));
  changed_.notify_all();
}

std::unique_ptr<ReplyStream> LiveFeed::Watch() {
  const std::lock_guard lock(mutex_);
  if (closed_ || watchers_ >= options_.max_watchers) return nullptr;
  ++watchers_;
  return std::make_unique<Stream>(*this);
}

void LiveFeed::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::size_t LiveFeed::watchers() const {
  const std::lock_guard lock(mutex_);
  return watchers_;
}

}  // namespace loopfleet::monitoring
