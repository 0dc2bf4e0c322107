#pragma once
// FakeDriver: a CUDA driver without a GPU. Memory is the host's, a launch runs a function given by
// the test, and any call can be made to fail. As with CUDA, a launch's error shows in a later call,
// and all calls after a sticky error fail. Used by one thread.

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/gpu/device/cuda_driver.h"

namespace loopfleet::worker {

class FakeDriver final : public CudaDriver {
 public:
  // The effect of a launch on memory. `buffers` are the launch's arguments.
  using Kernel = std::function<void(const std::vector<float*>& buffers)>;

  int devices = 1;
  Facts facts_of_all{.name = "Fake GPU",
                     .compute_capability = 90,
                     .driver_version = 13000,
                     .multiprocessors = 4,
                     .memory_bytes = std::int64_t{1} << 30,
                     .l2_bytes = 1 << 20};
  std::map<std::string, Kernel> kernels;     // by symbol
  std::optional<CudaCode> launch_ends_with;  // error of every launch from now on
  bool launches_never_end = false;
  bool memory_forgets = false;
  std::uint64_t memory_limit = std::uint64_t{1} << 30;
  std::map<std::string, CudaCode> fails;  // by the name of the method below
  std::vector<std::string> calls;
  int live_allocations() const { return static_cast<int>(memory_.size()); }
  int live_modules = 0;
  int live_events = 0;
  int live_batches = 0;
  int batches_started = 0;
  int evictions = 0;
  float launch_ms = 0.25F;  // duration of a launch, milliseconds
  // Replaces launch_ms, if set: the duration after the device has worked for `worked_ms`.
  std::function<float(float worked_ms)> launch_ms_after;
  bool is_busy = false;  // work was started since the last Query
  int contexts = 0;

  CudaCode DeviceCount(int& count) override {
    count = devices;
    return Called("DeviceCount");
  }
  CudaCode DeviceFacts(int, Facts& facts) override {
    facts = facts_of_all;
    return Called("DeviceFacts");
  }
  CudaCode EnterContext(int) override {
    const CudaCode code = Called("EnterContext");
    contexts += code == CudaCode::kSuccess ? 1 : 0;
    return code;
  }
  CudaCode LeaveContext(int) override {
    --contexts;
    return Called("LeaveContext");
  }
  CudaCode LoadModule(const std::string&, Module& module) override {
    const CudaCode code = Called("LoadModule");
    if (code == CudaCode::kSuccess) {
      module.handle = this;
      ++live_modules;
    }
    return code;
  }
  CudaCode UnloadModule(Module) override {
    --live_modules;
    return Called("UnloadModule");
  }
  CudaCode FindFunction(Module, const std::string& symbol, Function& function) override {
    const auto at = kernels.find(symbol);
    if (at == kernels.end()) return CudaCode::kInvalidValue;
    function.handle = &at->second;
    return Called("FindFunction");
  }
  CudaCode Allocate(std::uint64_t bytes, CudaAddress& address) override {
    if (const CudaCode code = Called("Allocate"); code != CudaCode::kSuccess) return code;
    if (bytes > memory_limit) return CudaCode::kOutOfMemory;
    std::vector<char> block(bytes);
    address = reinterpret_cast<CudaAddress>(block.data());
    memory_[address] = std::move(block);
    return CudaCode::kSuccess;
  }
  CudaCode Free(CudaAddress address) override {
    return memory_.erase(address) == 1 ? Called("Free") : CudaCode::kInvalidValue;
  }
  CudaCode CopyIn(CudaAddress to, const void* from, std::uint64_t bytes) override {
    std::memcpy(At(to), from, bytes);
    return Called("CopyIn");
  }
  CudaCode CopyOut(void* to, CudaAddress from, std::uint64_t bytes) override {
    std::memcpy(to, At(from), bytes);
    return Called("CopyOut");
  }
  CudaCode Fill(CudaAddress to, std::uint32_t word, std::uint64_t words) override {
    for (std::uint64_t i = 0; i < words; ++i) {
      const std::uint32_t kept = memory_forgets && i == words / 2 ? word ^ 1U : word;
      std::memcpy(At(to) + 4 * i, &kept, 4);
    }
    return Called("Fill");
  }
  CudaCode Start(const Launch& launch) override {
    std::vector<float*> buffers;
    for (CudaAddress argument : launch.arguments) {
      buffers.push_back(reinterpret_cast<float*>(At(argument)));
    }
    if (const CudaCode code = Called("Start"); code != CudaCode::kSuccess) return code;
    if (launch_ends_with.has_value()) {
      broken_ = *launch_ends_with;
    } else if (!launches_never_end) {
      (*static_cast<Kernel*>(launch.function.handle))(buffers);
    }
    Work();
    return CudaCode::kSuccess;
  }
  CudaCode StartFill(CudaAddress to, std::uint32_t word, std::uint64_t words) override {
    ++evictions;
    return Fill(to, word, words);
  }
  CudaCode StartCopy(CudaAddress to, CudaAddress from, std::uint64_t bytes) override {
    std::memcpy(At(to), At(from), bytes);
    Work();
    return Called("StartCopy");
  }
  CudaCode MakeBatch(const std::vector<Launch>& launches, Batch& batch) override {
    const CudaCode code = Called("MakeBatch");
    if (code == CudaCode::kSuccess) {
      batch.handle = new std::vector<Launch>(launches);
      ++live_batches;
    }
    return code;
  }
  CudaCode DestroyBatch(Batch batch) override {
    delete static_cast<std::vector<Launch>*>(batch.handle);
    --live_batches;
    return Called("DestroyBatch");
  }
  CudaCode StartBatch(Batch batch) override {
    ++batches_started;
    for (const Launch& launch : *static_cast<std::vector<Launch>*>(batch.handle)) {
      if (const CudaCode code = Start(launch); code != CudaCode::kSuccess) return code;
    }
    return CudaCode::kSuccess;
  }
  CudaCode CreateEvent(Event& event) override {
    const CudaCode code = Called("CreateEvent");
    if (code == CudaCode::kSuccess) event.handle = &event_times_[++live_events];
    return code;
  }
  CudaCode DestroyEvent(Event) override {
    --live_events;
    return Called("DestroyEvent");
  }
  CudaCode Record(Event event) override {
    *static_cast<double*>(event.handle) = worked_ms_;
    return Called("Record");
  }
  CudaCode Query(Event) override {
    if (launches_never_end) return CudaCode::kNotReady;
    is_busy = false;
    return Called("Query");
  }
  CudaCode ElapsedMilliseconds(Event from, Event to, float& milliseconds) override {
    milliseconds =
        static_cast<float>(*static_cast<double*>(to.handle) - *static_cast<double*>(from.handle));
    return Called("ElapsedMilliseconds");
  }

 private:
  CudaCode Called(const std::string& name) {
    calls.push_back(name);
    if (broken_.has_value()) return *broken_;
    const auto at = fails.find(name);
    return at == fails.end() ? CudaCode::kSuccess : at->second;
  }
  void Work() {
    worked_ms_ += launch_ms_after ? launch_ms_after(static_cast<float>(worked_ms_)) : launch_ms;
    is_busy = true;
  }
  static char* At(CudaAddress address) { return reinterpret_cast<char*>(address); }

  std::map<CudaAddress, std::vector<char>> memory_;
  std::map<int, double> event_times_;  // milliseconds
  std::optional<CudaCode> broken_;     // sticky
  double worked_ms_ = 0;
};

}  // namespace loopfleet::worker
