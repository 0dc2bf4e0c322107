#include "worker/verification/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/program/program_facts.h"
#include "worker/verification/input_draw.h"

namespace loopfleet::worker {
namespace {

// About as much work is spent to find inputs that hide no elements: a second or less.
constexpr std::uint64_t kMostSearchFlops = std::uint64_t{1} << 30;

template <class Number>
std::span<Number> At(std::span<std::byte> memory, std::size_t offset, std::size_t count) {
  return {reinterpret_cast<Number*>(memory.subspan(offset, count * sizeof(Number)).data()), count};
}

// Whether neighbouring elements tell right outputs from wrong ones. An element within its own bound
// of zero tells nothing: a kernel that writes zeros would pass. Where the reference is NaN, any NaN
// passes. At most 1 % may be like that. Zeros and infinities are right where the program gives
// them, but some element must be a number beyond its bound.
bool IsInformative(std::span<const double> values, std::span<const double> tolerance) {
  std::size_t hidden = 0;
  std::size_t visible = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0 || std::isinf(values[i])) continue;
    ++(std::abs(values[i]) > tolerance[i] ? visible : hidden);  // NaN is hidden
  }
  return visible > 0 && 100 * hidden <= hidden + visible;
}

// Judges an output part by part, so that good parts do not make up for a hidden one. Parts are of
// equal size, give or take one element, so that none is too small to judge.
bool IsInformativeThroughout(std::span<const double> values, std::span<const double> tolerance) {
  constexpr std::size_t kPart = 1024;  // elements; a part has fewer than twice as many
  const std::size_t parts = std::max<std::size_t>(1, tolerance.size() / kPart);
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * tolerance.size() / parts;
    const std::size_t size = (part + 1) * tolerance.size() / parts - begin;
    if (!IsInformative(values.subspan(begin, size), tolerance.subspan(begin, size))) return false;
  }
  return true;
}

// Whether a finite element has an infinite tolerance: float32 may overflow on the way to it, so a
// correct kernel may give an infinity, a NaN or any number.
bool MayOverflow(std::span<const double> values, std::span<const double> tolerance) {
  for (std::size_t i = 0; i < tolerance.size(); ++i) {
    if (std::isfinite(values[i]) && !std::isfinite(tolerance[i])) return true;
  }
  return false;
}

// Why this reference cannot tell right outputs from wrong ones; nullopt: it can.
std::optional<std::string> WhyUnusable(const looptree::Reference& reference, InputNumbers numbers) {
  for (std::size_t i = 0; i < reference.outputs.size(); ++i) {
    if (reference.tolerance[i].empty()) continue;  // exact
    if (MayOverflow(reference.outputs[i], reference.tolerance[i])) {
      return fmt::format("float32 may overflow on the way to output {}", i);
    }
    if (numbers == InputNumbers::kWhole &&
        !IsInformativeThroughout(reference.outputs[i], reference.tolerance[i])) {
      return fmt::format(
          "parts of output {} are smaller than what float32 rounding may add up to, or no numbers",
          i);
    }
  }
  return std::nullopt;
}

bool IsConstant(std::span<const double> values) {
  return values.size() > 1 &&
         std::ranges::all_of(values, [&](double value) { return value == values.front(); });
}

// Per node, whether it depends on an input.
std::vector<bool> Varies(const looptree::Program& program) {
  const auto facts = looptree::ProgramFacts::OfValid(program);
  std::vector<bool> varies(program.nodes.size());
  for (const looptree::NodeId id : facts->order) {
    const looptree::Node& node = program.nodes[id];
    varies[id] = node.op == looptree::Op::kRead ||
                 std::ranges::any_of(node.inputs, [&](looptree::NodeId in) { return varies[in]; });
  }
  return varies;
}

// Whether an output has the same number everywhere though it depends on an input: the inputs may be
// on one side of a threshold, or the extremes of many all the same.
bool HidesElements(const looptree::Program& program, const looptree::Reference& reference) {
  for (std::size_t i = 0; i < reference.outputs.size(); ++i) {
    if (IsConstant(reference.outputs[i]) && Varies(program)[program.outputs[i]]) return true;
  }
  return false;
}

BufferLayout LayOutInputs(const looptree::Program& program) {
  std::vector<std::uint64_t> counts;
  for (const looptree::NodeId input : program.inputs) {
    counts.push_back(static_cast<std::uint64_t>(program.ElementCount(input)));
  }
  return LayOut(counts, 0);
}

// The bytes that a workload of the program takes.
std::size_t BytesOf(const looptree::Program& program) {
  return SharedMemory::SizeOf(LayOutInputs(program).size, SharedMemory::Pages::kInBlocks) +
         LayOutReference(program).size;
}

}  // namespace

ReferenceLayout LayOutReference(const looptree::Program& program) {
  constexpr std::size_t kAlignment = 64;
  ReferenceLayout layout;
  const auto add = [&](std::size_t bytes) {
    const std::size_t offset = layout.size;
    layout.size += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  };
  for (const looptree::NodeId output : program.outputs) {
    const auto count = static_cast<std::size_t>(program.ElementCount(output));
    const std::size_t rounded = add(count * sizeof(float));
    const std::size_t values = add(count * sizeof(double));
    const std::size_t tolerance = add(count * sizeof(double));
    layout.outputs.push_back(
        {.rounded = rounded, .values = values, .tolerance = tolerance, .count = count});
  }
  layout.size = (layout.size + kGuardBytes - 1) / kGuardBytes * kGuardBytes;  // whole pages
  return layout;
}

std::expected<std::vector<bool>, Failure> ComputeReference(const looptree::Program& program,
                                                           InputSeed seed,
                                                           std::span<std::byte> inputs,
                                                           std::span<std::byte> reference,
                                                           const Evaluator& evaluator) {
  const BufferLayout input_layout = LayOutInputs(program);
  std::vector<looptree::Tensor> tensors;
  looptree::Reference computed;
  SplitMix64 random(seed.value);         // one for all draws: each has other numbers
  const InputDraw* evaluated = nullptr;  // the last one
  const auto evaluate = [&](const InputDraw& draw) {
    evaluated = &draw;
    tensors.clear();
    for (std::size_t i = 0; i < input_layout.buffers.size(); ++i) {
      tensors.push_back(DrawInput(draw, i, input_layout.buffers[i].size / sizeof(float), random));
    }
    computed = {};  // free the previous one first
    computed = evaluator(program, tensors);
  };
  const std::vector<InputDraw> draws = InputDrawsFor(program, seed.numbers);
  struct Usable {
    const InputDraw* draw;
    SplitMix64 random;
  };
  std::optional<Usable> hiding;  // the first usable draw that hides elements; the program may do so
  std::optional<std::string> flaw;
  // Copies and views do no operations, but take as long.
  const std::uint64_t flops_each =
      std::max(looptree::FlopCount(program), looptree::TensorBytes(program) / sizeof(float));
  std::uint64_t flops = 0;
  for (const InputDraw& draw : draws) {
    const SplitMix64 before = random;
    evaluate(draw);
    flops += flops_each;
    flaw = WhyUnusable(computed, seed.numbers);
    if (!flaw && !HidesElements(program, computed)) {
      hiding.reset();
      break;
    }
    if (!flaw && !hiding) hiding = {.draw = &draw, .random = before};
    if (hiding && flops > kMostSearchFlops) break;
  }
  if (hiding && evaluated != hiding->draw) {
    flaw.reset();
    random = hiding->random;
    evaluate(*hiding->draw);
  }
  if (flaw) {
    return std::unexpected(Failure{
        .code = FailureCode::kUnsupported,
        .message = fmt::format("no kernel of this program can be verified, and nothing is timed "
                               "unverified: {}; sum fewer terms, or smaller ones",
                               *flaw)});
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const PlacedBuffer& buffer = input_layout.buffers[i];
    std::memcpy(inputs.subspan(buffer.offset, buffer.size).data(), tensors[i].data(), buffer.size);
  }
  const ReferenceLayout layout = LayOutReference(program);
  std::vector<bool> exact;
  for (std::size_t i = 0; i < layout.outputs.size(); ++i) {
    const ReferenceLayout::Output& output = layout.outputs[i];
    const std::vector<double>& values = computed.outputs[i];
    std::ranges::transform(values, At<float>(reference, output.rounded, output.count).begin(),
                           [](double value) { return static_cast<float>(value); });
    exact.push_back(computed.tolerance[i].empty());
    if (exact.back()) continue;
    std::ranges::copy(values, At<double>(reference, output.values, output.count).begin());
    std::ranges::copy(computed.tolerance[i],
                      At<double>(reference, output.tolerance, output.count).begin());
  }
  return exact;
}

std::expected<std::shared_ptr<const Workload>, Failure> MakeWorkload(const looptree::LoopTree& tree,
                                                                     InputSeed seed,
                                                                     const ReferenceMaker& maker) {
  auto workload = std::make_shared<Workload>();
  workload->program = tree.program();
  workload->seed = seed;
  workload->layout = LayOutInputs(tree.program());
  const ReferenceLayout layout = LayOutReference(tree.program());
  struct Piece {
    SharedMemory* memory;
    std::size_t size;
    SharedMemory::Pages pages;
  };
  for (const auto& [memory, size, pages] :
       {Piece{&workload->inputs, workload->layout.size, SharedMemory::Pages::kInBlocks},
        Piece{&workload->reference, layout.size, SharedMemory::Pages::kAnywhere}}) {
    Result<SharedMemory> created = SharedMemory::Create(size, pages);
    if (!created) {
      return std::unexpected(
          Failure{.code = FailureCode::kRunOom, .message = created.error().message});
    }
    *memory = *std::move(created);
  }
  LF_TRY(const std::vector<bool> exact, maker(tree, seed, workload->inputs, workload->reference));
  if (const Status sealed = workload->inputs.SealAgainstWrites(); !sealed) {
    return std::unexpected(
        Failure{.code = FailureCode::kDeviceFault, .message = sealed.error().message});
  }
  LF_CHECK(exact.size() == layout.outputs.size(), "{} outputs of {}", exact.size(),
           layout.outputs.size());
  const std::span<std::byte> reference = workload->reference.bytes();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const ReferenceLayout::Output& output = layout.outputs[i];
    ExpectedTensor& expected = workload->expected.emplace_back();
    expected.rounded = At<float>(reference, output.rounded, output.count);
    if (exact[i]) continue;
    expected.values = At<double>(reference, output.values, output.count);
    expected.tolerance = At<double>(reference, output.tolerance, output.count);
  }
  return workload;
}

WorkloadCache::WorkloadCache(const Options& options)
    : options_(options), fractions_{.value = OsRandom64(), .numbers = InputNumbers::kFractions} {
  for (std::uint32_t i = 0; i < options.seeds; ++i) seeds_.push_back({.value = OsRandom64()});
}

std::shared_ptr<const Workload> WorkloadCache::Find(const looptree::Program& program,
                                                    InputSeed seed) {
  const auto found = std::find_if(
      newest_first_.begin(), newest_first_.end(),
      [&](const auto& have) { return have->seed == seed && have->program == program; });
  if (found == newest_first_.end()) return nullptr;
  newest_first_.splice(newest_first_.begin(), newest_first_, found);
  return newest_first_.front();
}

bool WorkloadCache::IsMaking(const looptree::Program& program, InputSeed seed) const {
  return std::ranges::any_of(making_, [&](const Making& making) {
    return making.seed == seed && *making.program == program;
  });
}

void WorkloadCache::Keep(const std::shared_ptr<const Workload>& workload, Workloads& dropped) {
  newest_first_.push_front(workload);
  bytes_ += workload->bytes();
  while (newest_first_.size() > 1 &&
         (bytes_ > options_.max_bytes || newest_first_.size() > options_.max_count)) {
    bytes_ -= newest_first_.back()->bytes();
    dropped.splice(dropped.end(), newest_first_, std::prev(newest_first_.end()));
  }
}

bool WorkloadCache::Reserve(std::size_t bytes, Patience patience,
                            std::unique_lock<std::mutex>& lock) {
  if (patience == Patience::kNow && tickets_ != first_in_line_) return false;
  const std::uint64_t ticket = tickets_++;
  const auto has_room = [&] {
    return total_bytes_ == 0 || total_bytes_ + bytes <= options_.max_total_bytes;
  };
  while (ticket != first_in_line_ || !has_room()) {
    if (ticket != first_in_line_) {
      freed_.wait(lock);
      continue;
    }
    // Workloads that no job uses make room first.
    const auto unused = std::find_if(newest_first_.rbegin(), newest_first_.rend(),
                                     [](const auto& have) { return have.use_count() == 1; });
    if (unused == newest_first_.rend()) {
      if (patience == Patience::kNow) break;
      freed_.wait(lock);
      continue;
    }
    Workloads dropped;
    bytes_ -= (*unused)->bytes();
    dropped.splice(dropped.end(), newest_first_, std::prev(unused.base()));
    lock.unlock();
    dropped.clear();
    lock.lock();
  }
  const bool reserved = has_room();
  if (reserved) total_bytes_ += bytes;
  ++first_in_line_;
  freed_.notify_all();
  return reserved;
}

std::size_t WorkloadCache::CountWaiting() const {
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(tickets_ - first_in_line_);
}

void WorkloadCache::Free(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  total_bytes_ -= bytes;
  freed_.notify_all();
}

std::expected<std::shared_ptr<const Workload>, Failure> WorkloadCache::Get(
    const looptree::LoopTree& tree, const ReferenceMaker& maker) {
  std::unique_lock lock(mutex_);
  const InputSeed seed = seeds_[turn_++ % seeds_.size()];
  return GetOf(tree, seed, Patience::kWait, std::move(lock), maker);
}

std::shared_ptr<const Workload> WorkloadCache::GetFractions(const looptree::LoopTree& tree,
                                                            const ReferenceMaker& maker) {
  if (looptree::FlopCount(tree.program()) > options_.max_fraction_flops ||
      BytesOf(tree.program()) > options_.max_fraction_bytes) {
    return nullptr;
  }
  return GetOf(tree, fractions_, Patience::kNow, std::unique_lock(mutex_), maker).value_or(nullptr);
}

std::expected<std::shared_ptr<const Workload>, Failure> WorkloadCache::GetOf(
    const looptree::LoopTree& tree, InputSeed seed, Patience patience,
    std::unique_lock<std::mutex> held, const ReferenceMaker& maker) {
  const looptree::Program& program = tree.program();
  Workloads dropped;  // declared before the lock, so destroyed after it
  std::unique_lock lock = std::move(held);
  made_.wait(lock, [&] { return !IsMaking(program, seed); });
  if (auto workload = Find(program, seed)) return Lend(std::move(workload));
  const auto making = making_.insert(making_.end(), {.program = &program, .seed = seed});
  const std::size_t bytes = BytesOf(program);
  if (!Reserve(bytes, patience, lock)) {
    making_.erase(making);
    made_.notify_all();
    return nullptr;
  }
  lock.unlock();
  // Its bytes are free once the last owner releases it.
  const auto free_bytes = [this, bytes](const std::shared_ptr<const Workload>* made) {
    delete made;
    Free(bytes);
  };
  std::expected<std::shared_ptr<const Workload>, Failure> workload =
      MakeWorkload(tree, seed, maker);
  if (workload) {
    std::shared_ptr<const std::shared_ptr<const Workload>> counted(
        new std::shared_ptr<const Workload>(*std::move(workload)), free_bytes);
    const Workload* const made = counted->get();
    workload = std::shared_ptr<const Workload>(std::move(counted), made);
  } else {
    Free(bytes);
  }
  lock.lock();
  making_.erase(making);
  made_.notify_all();
  if (!workload) return workload;
  Keep(*workload, dropped);
  return Lend(*std::move(workload));
}

std::shared_ptr<const Workload> WorkloadCache::Lend(std::shared_ptr<const Workload> workload) {
  const Workload* const lent = workload.get();
  return {lent, [this, workload = std::move(workload)](const Workload*) mutable {
            workload.reset();
            // The cache may now drop it, and nothing else tells the threads that wait for room.
            std::lock_guard lock(mutex_);
            freed_.notify_all();
          }};
}

}  // namespace loopfleet::worker
