#pragma once
// PageCrowd: a load for a coordinator's HTTP listener: many live viewers of the page, and many
// connections that never complete a request. One thread serves all of them.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

namespace loopfleet::bench {

struct PageCrowdOptions {
  std::string address;  // 127.0.0.1:PORT
  std::size_t viewers = 100;
  std::size_t half_open = 64;  // connections; reopened when the server closes them
};

class PageCrowd {
 public:
  // Returns once every viewer has its first event.
  explicit PageCrowd(const PageCrowdOptions& options);
  ~PageCrowd();
  PageCrowd(const PageCrowd&) = delete;
  PageCrowd& operator=(const PageCrowd&) = delete;

  std::uint64_t bytes() const { return bytes_; }     // received by all viewers
  std::size_t viewers() const { return watching_; }  // those with a running stream

 private:
  void Run();

  PageCrowdOptions options_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::size_t> watching_ = 0;
  std::thread thread_;
};

}  // namespace loopfleet::bench
