// Halide's autoschedulers on programs of loopfleet's data sets. A separate program, because
// Debian's Halide brings another LLVM.
//
//   bench_halide_autoscheduler tune PROGRAM FOLDER SECONDS SCHEDULER CANDIDATES
//   bench_halide_autoscheduler time PROGRAM FOLDER SECONDS
//
// `tune` samples schedules as Halide's autotune_loop.sh does, without retraining the cost model:
// the first is the autoscheduler's own choice, the others are random probes that its cost model
// favours. Each is compiled, linked and measured by itself, until the seconds or the candidates are
// over. The best one is left as FOLDER/kernel.so. Prints {"seconds", "measured", "failed", "what"}.
//
// `time` runs FOLDER/kernel.so on FOLDER/in0.f32, in1.f32, ... (float32, row-major), writes
// FOLDER/out.f32, and prints {"elapsed_ns"}: the median of one call.

#include <Halide.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Sizes = std::vector<int>;  // outermost first, as in loopfleet
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

constexpr double kCandidateSeconds = 0.02;  // of measuring one candidate

// All sizes are constants for Halide, as they are for loopfleet.
struct Program {
  std::vector<Halide::ImageParam> inputs;
  std::vector<Sizes> input_sizes;
  Func out{"out"};
  Sizes out_sizes;
};

Halide::Region RegionOf(const Sizes& sizes) {
  Halide::Region region;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) region.emplace_back(0, *size);
  return region;
}

template <typename Image>
void FixSizes(Image image, const Sizes& sizes) {
  int stride = 1;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    const int size = sizes[sizes.size() - 1 - dim];
    image.dim(static_cast<int>(dim)).set_bounds(0, size).set_stride(stride);
    stride *= size;
  }
}

class ProgramWriter {
 public:
  Func Input(const Sizes& sizes) {
    Halide::ImageParam image(Halide::Float(32), static_cast<int>(sizes.size()),
                             fmt::format("in{}", program_.inputs.size()));
    FixSizes(image, sizes);
    image.set_estimates(RegionOf(sizes));
    program_.inputs.push_back(image);
    program_.input_sizes.push_back(sizes);
    return image;
  }

  // `out` by its coordinates, the contiguous one first.
  Program Output(const std::vector<Var>& at, const Expr& value, const Sizes& sizes) && {
    program_.out(at) = value;
    FixSizes(program_.out.output_buffer(), sizes);
    program_.out.set_estimates(RegionOf(sizes));
    program_.out_sizes = sizes;
    return std::move(program_);
  }

 private:
  Program program_;
};

std::pair<std::string, Sizes> KindAndSizes(const std::string& benchmark) {
  const std::string member = benchmark.substr(benchmark.rfind('/') + 1);
  std::size_t end = member.find_first_of("0123456789");
  if (end != std::string::npos && member.starts_with("conv1d")) end = 6;
  if (end == std::string::npos) throw std::invalid_argument("no sizes in " + benchmark);
  Sizes sizes;
  for (std::size_t at = end; at < member.size();) {
    const std::size_t next = std::min(member.find('_', at), member.size());
    if (next > at) sizes.push_back(std::stoi(member.substr(at, next - at)));
    at = next + 1;
  }
  return {member.substr(0, end), sizes};
}

// Sums are functions of their own, so that an autoscheduler may keep them in registers.
Program Define(const std::string& benchmark) {
  const auto [kind, s] = KindAndSizes(benchmark);
  const Var i("i"), j("j"), c("c"), b("b");
  ProgramWriter writer;
  Func sum("sum");
  if (kind == "mm" || kind == "mmbias" || kind.starts_with("positive_product")) {
    const Func x = writer.Input({s.at(0), s.at(2)}), y = writer.Input({s.at(2), s.at(1)});
    const RDom k(0, s.at(2));
    const Expr product = x(k, i) * y(j, k);
    sum(j, i) += kind.starts_with("positive_product") ? Halide::max(product, 0.0F) : product;
    Expr value = sum(j, i);
    if (kind == "mmbias") {
      const Func bias = writer.Input({s.at(1)}), floor = writer.Input({s.at(0), s.at(1)});
      value = Halide::max(value + bias(j), floor(j, i));
    }
    return std::move(writer).Output({j, i}, value, {s.at(0), s.at(1)});
  }
  if (kind == "twomm") {
    const Func x = writer.Input({s.at(0), s.at(2)}), y = writer.Input({s.at(2), s.at(1)});
    const Func z = writer.Input({s.at(1), s.at(3)});
    const RDom k(0, s.at(2)), n(0, s.at(1));
    Func first("first");
    first(j, i) += x(k, i) * y(j, k);
    sum(j, i) += first(n, i) * z(j, n);
    return std::move(writer).Output({j, i}, sum(j, i), {s.at(0), s.at(3)});
  }
  if (kind == "conv") {
    const Func x = writer.Input({s.at(0), s.at(1), s.at(2), s.at(3)});
    const Func w = writer.Input({s.at(4), s.at(5), s.at(6), s.at(7)});
    const RDom r(0, s.at(7), 0, s.at(6), 0, s.at(1));
    sum(j, i, c, b) += x(j + r.x, i + r.y, r.z, b) * w(r.x, r.y, r.z, c);
    return std::move(writer).Output(
        {j, i, c, b}, sum(j, i, c, b),
        {s.at(0), s.at(4), s.at(2) - s.at(6) + 1, s.at(3) - s.at(7) + 1});
  }
  if (kind == "conv1d") {
    const Func x = writer.Input({s.at(0)}), w = writer.Input({s.at(1)});
    const RDom k(0, s.at(1));
    sum(i) += x(i + k) * w(k);
    return std::move(writer).Output({i}, sum(i), {s.at(0) - s.at(1) + 1});
  }
  if (kind == "chain") {
    const Func x = writer.Input({s.at(0), s.at(1)}), y = writer.Input({s.at(0), s.at(1)});
    return std::move(writer).Output({j, i}, Halide::exp(x(j, i) * y(j, i)) + x(j, i), s);
  }
  if (kind == "reduce_add") {
    const Func x = writer.Input({s.at(0), s.at(1)});
    const RDom k(0, s.at(1));
    sum(i) += x(k, i);
    return std::move(writer).Output({i}, sum(i), {s.at(0)});
  }
  if (kind == "reduce_max" || kind == "shift") {
    const Func x = writer.Input({s.at(0), s.at(1)});
    const RDom k(0, s.at(1));
    Func greatest("greatest");
    greatest(i) = std::numeric_limits<float>::lowest();
    greatest(i) = Halide::max(greatest(i), x(k, i));
    if (kind == "reduce_max") return std::move(writer).Output({i}, greatest(i), {s.at(0)});
    return std::move(writer).Output({j, i}, x(j, i) - greatest(i), s);
  }
  throw std::invalid_argument(benchmark + " is of no kind that halide_autoscheduler.cc knows");
}

// ---- a compiled kernel

Halide::Buffer<float> BufferOf(const Sizes& sizes) {
  return Halide::Buffer<float>(std::vector<int>(sizes.rbegin(), sizes.rend()));
}

class Kernel {
 public:
  Kernel(const std::filesystem::path& library, const Program& program)
      : out_(BufferOf(program.out_sizes)) {
    void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(::dlerror());
    run_ = reinterpret_cast<int (*)(void**)>(::dlsym(handle, "kernel_argv"));
    if (run_ == nullptr) throw std::runtime_error(::dlerror());
    for (const Sizes& sizes : program.input_sizes) inputs_.emplace_back(BufferOf(sizes)).fill(0.5F);
    for (auto& input : inputs_) arguments_.push_back(input.raw_buffer());
    arguments_.push_back(out_.raw_buffer());
  }

  std::vector<Halide::Buffer<float>>& inputs() { return inputs_; }
  Halide::Buffer<float>& out() { return out_; }

  void Run() {
    if (run_(arguments_.data()) != 0) throw std::runtime_error("the kernel failed");
  }

  // Of one call, over batches of at least 1 ms: as numpy_programs.py measures.
  double MedianNs(double seconds) {
    using Nanos = std::chrono::duration<double, std::nano>;
    const auto run_ns = [this](int calls) {
      const auto since = Clock::now();
      for (int call = 0; call < calls; ++call) Run();
      return Nanos(Clock::now() - since).count();
    };
    int calls = 1;
    while (run_ns(calls) < 1e6) calls *= 2;
    std::vector<double> samples;
    for (const auto since = Clock::now();
         samples.size() < 5 || Seconds(Clock::now() - since).count() < seconds;) {
      samples.push_back(run_ns(calls) / calls);
    }
    std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
    return samples[samples.size() / 2];
  }

 private:
  int (*run_)(void**) = nullptr;
  std::vector<Halide::Buffer<float>> inputs_;
  Halide::Buffer<float> out_;
  std::vector<void*> arguments_;
};

// ---- candidates

struct Tuning {
  std::string scheduler;
  std::string benchmark;
  std::filesystem::path folder;

  std::filesystem::path RuntimeObject() const { return folder / "runtime.o"; }
};

Halide::Target TargetOf() {
  return Halide::get_host_target().with_feature(Halide::Target::NoRuntime);
}

// As autotune_loop.sh sets them.
void ChooseSample(int number) {
  ::setenv("HL_SEED", std::to_string(number).c_str(), 1);
  ::setenv("HL_RANDOM_DROPOUT", number == 0 ? "100" : "1", 1);
  ::setenv("HL_BEAM_SIZE", number == 0 ? "32" : "1", 1);
}

// Schedules, compiles, links and measures; nanoseconds of one call.
double Try(const Tuning& tuning, int number, const std::filesystem::path& library) {
  constexpr int kParallelism = 1;
  constexpr float kBalance = 40;  // what a load costs in arithmetic: Halide's default
  ChooseSample(number);
  const Program program = Define(tuning.benchmark);
  const long last_cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  Halide::Pipeline pipeline(program.out);
  pipeline.auto_schedule(
      tuning.scheduler, TargetOf(),
      Halide::MachineParams(kParallelism, last_cache > 0 ? last_cache : 16'000'000, kBalance));
  const std::filesystem::path object = std::filesystem::path(library).replace_extension(".o");
  const std::vector<Halide::Argument> arguments(program.inputs.begin(), program.inputs.end());
  pipeline.compile_to_object(object, arguments, "kernel", TargetOf());
  const std::string link =
      fmt::format("cc -shared -o '{}' '{}' '{}' -lpthread -ldl -lm", library.c_str(),
                  object.c_str(), tuning.RuntimeObject().c_str());
  if (std::system(link.c_str()) != 0) throw std::runtime_error("cc failed");
  return Kernel(library, program).MedianNs(kCandidateSeconds);
}

// In a child process, because schedules may crash or take too long. nullopt: no figure by then.
std::optional<double> TryInChild(const Tuning& tuning, int number,
                                 const std::filesystem::path& library, Clock::time_point until) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    ::setpgid(0, 0);
    double figure = 0;
    try {
      figure = Try(tuning, number, library);
    } catch (const std::exception& error) {
      std::cerr << "candidate " << number << ": " << error.what() << "\n";
      ::_exit(1);
    }
    ::_exit(::write(ends[1], &figure, sizeof figure) == sizeof figure ? 0 : 1);
  }
  ::setpgid(child, child);
  ::close(ends[1]);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  pollfd readable{.fd = ends[0], .events = POLLIN, .revents = 0};
  double figure = 0;
  const bool is_told =
      ::poll(&readable, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0 &&
      ::read(ends[0], &figure, sizeof figure) == sizeof figure;
  ::close(ends[0]);
  ::kill(-child, SIGKILL);  // with the linker that it may have started
  ::waitpid(child, nullptr, 0);
  return is_told ? std::optional(figure) : std::nullopt;
}

int Tune(const Tuning& tuning, double seconds, int candidates) {
  Halide::load_plugin(tuning.scheduler == "Adams2019" ? HALIDE_ADAMS2019 : HALIDE_MULLAPUDI2016);
  Define(tuning.benchmark);  // an unknown program ends here
  Halide::compile_standalone_runtime(tuning.RuntimeObject(), Halide::get_host_target());
  const auto since = Clock::now();
  const auto until = since + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
  std::optional<double> best;
  int measured = 0, failed = 0;
  for (int number = 0; number < candidates && Clock::now() < until; ++number) {
    const std::filesystem::path library = tuning.folder / fmt::format("candidate{}.so", number);
    const auto figure = TryInChild(tuning, number, library, until);
    if (!figure && Clock::now() >= until) break;
    ++(figure ? measured : failed);
    if (figure && (!best || *figure < *best)) {
      best = figure;
      std::filesystem::rename(library, tuning.folder / "kernel.so");
    }
  }
  const double took = Seconds(Clock::now() - since).count();
  std::cout << fmt::format(
      R"({{"seconds": {:.3f}, "measured": {}, "failed": {}, "what": "Halide 14, {}"}})", took,
      measured, failed, tuning.scheduler);
  std::cout << std::endl;
  return 0;
}

int Time(const std::string& benchmark, const std::filesystem::path& folder, double seconds) {
  const Program program = Define(benchmark);
  Kernel kernel(folder / "kernel.so", program);
  for (std::size_t number = 0; number < kernel.inputs().size(); ++number) {
    Halide::Buffer<float>& input = kernel.inputs()[number];
    std::ifstream file(folder / fmt::format("in{}.f32", number), std::ios::binary);
    if (!file.read(reinterpret_cast<char*>(input.data()),
                   static_cast<std::streamsize>(input.size_in_bytes()))) {
      throw std::runtime_error(fmt::format("in{}.f32 is missing or too short", number));
    }
  }
  kernel.Run();
  std::ofstream(folder / "out.f32", std::ios::binary)
      .write(reinterpret_cast<const char*>(kernel.out().data()),
             static_cast<std::streamsize>(kernel.out().size_in_bytes()));
  std::cout << fmt::format(R"({{"elapsed_ns": {:.1f}}})", kernel.MedianNs(seconds)) << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  ::setenv("HL_NUM_THREADS", "1", 1);
  try {
    if (words.size() == 6 && words[0] == "tune") {
      return Tune({words[4], words[1], words[2]}, std::stod(words[3]), std::stoi(words[5]));
    }
    if (words.size() == 4 && words[0] == "time") {
      return Time(words[1], words[2], std::stod(words[3]));
    }
  } catch (const std::exception& error) {
    std::cerr << "bench_halide_autoscheduler: " << error.what() << "\n";
    return 1;
  }
  std::cerr
      << "usage: bench_halide_autoscheduler tune PROGRAM FOLDER SECONDS SCHEDULER CANDIDATES\n"
         "       bench_halide_autoscheduler time PROGRAM FOLDER SECONDS\n";
  return 2;
}
